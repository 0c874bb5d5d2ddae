"""The memory that compiled code keeps its temporaries in: one piece for each thread, made at its first call."""

from __future__ import annotations

import threading

import numpy as np

#: A cache line, which is also the widest vector.
ALIGNMENT = 64


class Workspace(threading.local):
    """`address` is that of `size` bytes that belong to the calling thread; they are aligned to `ALIGNMENT`."""

    def __init__(self, size: int):
        self._memory = np.empty(size + ALIGNMENT, np.uint8)
        self.address = -(-self._memory.ctypes.data // ALIGNMENT) * ALIGNMENT
