"""A function of torch's in whose place another one stands for a while; one thread at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replaced(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    """Has `owner.name` be `replacement` in the `with` block."""
    original, is_own = getattr(owner, name), name in vars(owner)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        if is_own:
            setattr(owner, name, original)
        else:  # a base class has it
            delattr(owner, name)
