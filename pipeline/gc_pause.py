"""Python's collector of cyclic garbage rests while models are compiled.

A compilation makes some hundred thousand objects that live until its end, and the collector, which runs by their
number, would look through all of them again and again (a fifth of the time that BERT-base takes). What it could free
before the end is little: reference counts free the rest.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

from pipeline import locks

_lock = locks.lock()
_resting = 0
_was_enabled = False


@contextlib.contextmanager
def left() -> Iterator[None]:
    """Leaves cyclic garbage where it is until the `with` block ends, in all threads; then the collector is as before.

    Blocks may be inside each other and in several threads: the collector is back when the last one ends.
    """
    global _resting, _was_enabled
    with _lock:
        if _resting == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _resting += 1
    try:
        yield
    finally:
        with _lock:
            _resting -= 1
            if _resting == 0 and _was_enabled:
                gc.enable()
