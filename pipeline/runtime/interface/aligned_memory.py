"""Memory for compiled code, aligned to what its widest loads and stores take."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pipeline.runtime.interface.entry_point import ALIGNMENT
from pipeline.runtime.interface.signature import DTYPE_BYTES, TensorType


class Arena:
    """`size` bytes from `address` on, which is a multiple of `ALIGNMENT`; they live as long as this object.

    NumPy asks for large pages where it allocates much, so that first touches cost a tenth.
    """

    def __init__(self, size: int):
        self.size = size
        self._memory = np.empty(size + ALIGNMENT, np.uint8)
        self.address = aligned(self._memory.ctypes.data)


def aligned(size: int) -> int:
    """The next multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


_nothing = [Arena(4096)]


def first_row_of_nothing(shape: Sequence[int], itemsize: int) -> int:
    """An address for a tensor without elements, of which code may read those at index 0 after a check has failed.

    So memory lies there, for a row along every dimension that is not empty. It stays for the next one.
    """
    size = math.prod(max(int(extent), 1) for extent in shape) * itemsize
    if size > _nothing[-1].size:
        _nothing.append(Arena(size))  # another thread may still read the one before
    return _nothing[-1].address


def offsets(types: Sequence[TensorType]) -> list[int]:
    """Where tensors of known sizes start, one behind the other, and at the end how long all are."""
    places = [0]
    for kind in types:
        places.append(places[-1] + aligned(byte_size(kind)))
    return places


def byte_size(kind: TensorType) -> int:
    """How many bytes the elements of a tensor of known size take."""
    return math.prod(map(int, kind.shape)) * DTYPE_BYTES[kind.dtype]
