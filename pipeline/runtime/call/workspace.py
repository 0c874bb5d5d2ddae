"""The memory that compiled code keeps its temporaries in: one piece for each thread that calls, kept between calls."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pipeline.runtime.interface.aligned_memory import Arena


class Workspace(threading.local):
    """`address` is that of `size` aligned bytes that belong to the calling thread.

    Attributes:
        varies: whether the size depends on how many threads share the work: `fit` is to be called before each use.
    """

    def __init__(self, size: int, thread_bytes: int = 0, threads: Callable[[], int] = lambda: 1):
        """`size` is for one thread, each other one of so many `threads` takes `thread_bytes` more."""
        self._least, self._thread_bytes, self._threads = size, thread_bytes, threads
        self.varies = thread_bytes > 0
        self.size = -1
        self.fit()

    def fit(self) -> None:
        """Makes the memory larger if there are more threads than before."""
        size = self._least + self._thread_bytes * (self._threads() - 1)
        if size > self.size:
            self._arena = Arena(size)
            self.size, self.address = size, self._arena.address
