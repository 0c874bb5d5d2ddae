"""Names for Python objects, for as long as they are needed: options of passes are text."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Lender(Generic[T]):
    """Lends objects of one kind under names that begin with `@`."""

    def __init__(self) -> None:
        self._lent: dict[str, T] = {}
        self._numbers = itertools.count()

    @contextlib.contextmanager
    def lend(self, thing: T) -> Iterator[str]:
        """A name by which `get` finds `thing` inside of the `with` block."""
        name = f"@{next(self._numbers)}"
        self._lent[name] = thing
        try:
            yield name
        finally:
            del self._lent[name]

    def get(self, name: str) -> T | None:
        """What is lent under `name`; None if nothing is."""
        return self._lent.get(name)
