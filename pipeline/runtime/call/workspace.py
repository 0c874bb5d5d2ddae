"""The memory that compiled code keeps its temporaries in: one piece for each thread that calls, kept between calls."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pipeline.runtime.interface.aligned_memory import Arena


class Workspace:
    """Hands out the calling thread's piece.

    Attributes:
        is_needed: whether the code ever uses it.
    """

    def __init__(self, size: int, thread_bytes: int = 0, threads: Callable[[], int] = lambda: 1):
        """`size` is for one thread, each other one of so many `threads` takes `thread_bytes` more."""
        self.is_needed = size > 0 or thread_bytes > 0
        self._least, self._thread_bytes, self._threads = size, thread_bytes, threads
        self._own = _Own()

    def place(self) -> tuple[int, int]:
        """The address of aligned bytes, and how many; larger ones than before if there are more threads."""
        own = self._own
        if own.arena is None or self._thread_bytes or self._least > own.arena.size:
            size = self._least + self._thread_bytes * (self._threads() - 1)
            if own.arena is None or size > own.arena.size:
                own.arena = Arena(size)
                own.place = own.arena.address, size
        return own.place

    def share(self, other: Workspace) -> None:
        """Has both hand out the same piece, which is as large as either wants it."""
        self._own = other._own


class _Own(threading.local):
    """What one thread has."""

    arena: Arena | None = None
    place = (0, 0)
