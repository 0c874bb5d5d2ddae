"""Locks that a forked child finds free: the thread that may have held one is not in it."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.Lock:
    """A new lock."""
    return _known(threading.Lock())


def recursive_lock() -> threading.RLock:
    """A new lock that a thread may take again."""
    return _known(threading.RLock())


def _known(new_lock: Any) -> Any:
    _made.add(new_lock)
    return new_lock


def _free_all() -> None:
    for made_lock in list(_made):
        made_lock._at_fork_reinit()  # as Python does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
