"""Names of weights, and patterns of them."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase


def matches(name: str, pattern: str) -> bool:
    """Whether a weight's name matches a pattern, or that of a module around it does."""
    return any(fnmatchcase(part, pattern) for part in _with_modules_around(name))


def _with_modules_around(name: str) -> Iterator[str]:
    """`a.b.c`, `a.b`, `a`."""
    while name:
        yield name
        name = name.rpartition(".")[0]
