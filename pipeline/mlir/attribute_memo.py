"""What was read of attributes, kept while a pass pipeline runs: an attribute never changes, and many ops share one.

An attribute keeps its context alive, and all that is in that. So nothing stays behind the `with` block.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class _Memo(threading.local):
    known: dict[Any, Any] | None = None


_memo = _Memo()


@contextlib.contextmanager
def attributes_remembered() -> Iterator[None]:
    """In the `with` block, functions that are `remembered` look at the same attributes once; blocks may be nested."""
    before = _memo.known
    if before is None:
        _memo.known = {}
    try:
        yield
    finally:
        _memo.known = before


def remembered(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Makes a function of attributes, types and numbers alone one that answers the same question once."""

    @functools.wraps(function)
    def asked(*arguments: Any) -> _Result:
        known = _memo.known
        if known is None:
            return function(*arguments)
        key = (function, *arguments)
        found = known.get(key)
        if found is None:
            found = known[key] = function(*arguments)
        return found

    return asked
