"""NumPy's arrays, behind the interface of `ArrayLibrary`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pipeline.runtime.call import generator
from pipeline.runtime.call.array_library import OVERLAP, overlaps_itself, raw_bytes
from pipeline.runtime.interface.signature import DTYPE_BYTES
from pipeline.runtime.interface.small_floats import SMALL_FLOATS

_DTYPES = {name: SMALL_FLOATS.get(name) or np.dtype(name) for name in DTYPE_BYTES}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class NumpyArrays:
    """NumPy's arrays; see `pipeline.runtime.interface.small_floats` for what is bfloat16 and what float8."""

    name = "numpy"
    dtypes = _DTYPES

    def dtype(self, array: np.ndarray) -> str:
        """The dtype's name."""
        return _NAMES.get(array.dtype) or str(array.dtype)

    def shape(self, array: np.ndarray) -> tuple[int, ...]:
        """The sizes."""
        return array.shape

    def device(self, array: np.ndarray) -> str:
        """Always `cpu`."""
        return "cpu"

    def pointer(self, array: np.ndarray) -> int:
        """The address of the first element."""
        return array.ctypes.data

    def is_row_major(self, array: np.ndarray) -> bool:
        """Whether code can read and write the array where it is."""
        return array.flags.c_contiguous and array.flags.aligned

    def contiguous(self, array: np.ndarray) -> np.ndarray:
        """The array itself if it is row-major, else a copy that is."""
        return array if self.is_row_major(array) else array.copy("C")

    def empty(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        """A new array with undefined elements."""
        return np.empty(shape, self.dtypes[dtype])

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        """Copies elements."""
        np.copyto(target, source)

    def extent(self, array: np.ndarray) -> tuple[int, int]:
        """[first, last) of the bytes that the array's elements lie in."""
        return np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)

    def obstacle(self, array: np.ndarray) -> str | None:
        """Why nothing can be written to the array; None if it can."""
        if not array.flags.writeable:
            return "is read-only"
        return OVERLAP if overlaps_itself(array.shape, array.strides) else None

    def mark_written(self, array: np.ndarray) -> None:
        """NumPy does not keep track of it."""

    def adopt(self, memory: object, address: int, shape: Sequence[int], dtype: str) -> np.ndarray:
        """An array over memory that `memory` keeps as it is for as long as it lives."""
        kind = self.dtypes[dtype]
        raw = raw_bytes(memory, address, math.prod(shape) * kind.itemsize)
        return np.frombuffer(raw, np.uint8).view(kind).reshape(shape) if len(raw) else self.empty(shape, dtype)

    def permuted(self, array: np.ndarray, permutation: Sequence[int]) -> np.ndarray:
        """A view with its dims in another order."""
        return array.transpose(permutation)

    def relabelled(self, array: np.ndarray, permutation: Sequence[int]) -> np.ndarray:
        """The same."""
        return array.transpose(permutation)

    def seed(self) -> int:
        """From this package's own generator: see `pipeline.manual_seed`."""
        return generator.draw()
