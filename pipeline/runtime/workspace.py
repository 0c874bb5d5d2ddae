"""The memory that compiled code keeps its temporaries in: one piece for each thread, made at its first call."""

from __future__ import annotations

import threading

from pipeline.runtime.memory import Arena


class Workspace(threading.local):
    """`address` is that of `size` aligned bytes that belong to the calling thread."""

    def __init__(self, size: int):
        self.size = size
        self._arena = Arena(size)
        self.address = self._arena.address
