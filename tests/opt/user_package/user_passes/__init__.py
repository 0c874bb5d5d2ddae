"""The passes of a user's package."""

from user_passes.rename import Rename

__all__ = ["Rename"]
