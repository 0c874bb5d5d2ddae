"""Entries of a model that are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.runtime.executable import Executable


class LaterEntry:
    """An executable that is compiled when it is first asked for."""

    def __init__(self, make: Callable[[], Executable], like: Executable):
        """It begins with as many threads as `like` has then."""
        self._make, self._like = make, like
        self._made: Executable | None = None

    def __call__(self) -> Executable:
        """The executable."""
        if self._made is None:
            self._made = self._make()
            self._made.num_threads = self._like.num_threads
        return self._made
