"""What the runtime has to know of a kind of tensor, and what the libraries of these share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Protocol

_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]


class ArrayLibrary(Protocol):
    """What the executable needs to know of a kind of tensor."""

    name: str

    def dtype(self, array: Any) -> str:
        """The dtype's name."""
        ...

    def shape(self, array: Any) -> tuple[int, ...]:
        """The sizes."""
        ...

    def device(self, array: Any) -> str:
        """The device's name, `cpu` for what code can read."""
        ...

    def pointer(self, array: Any) -> int:
        """The address of the first element."""
        ...

    def is_row_major(self, array: Any) -> bool:
        """Whether code can read and write the array where it is."""
        ...

    def contiguous(self, array: Any) -> Any:
        """The array itself if it is row-major, else a copy that is."""
        ...

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """A new array with undefined elements."""
        ...

    def copy(self, target: Any, source: Any) -> None:
        """Copies elements."""
        ...

    def extent(self, array: Any) -> tuple[int, int]:
        """[first, last) of the bytes that the elements lie in."""
        ...

    def obstacle(self, array: Any) -> str | None:
        """Why nothing can be written to the array; None if it can."""
        ...

    def mark_written(self, array: Any) -> None:
        """Tells the library that code has written to the array."""
        ...

    def adopt(self, memory: object, address: int, shape: Sequence[int], dtype: str) -> Any:
        """An array over memory that `memory` keeps as it is for as long as it lives."""
        ...

    def permuted(self, array: Any, permutation: Sequence[int]) -> Any:
        """A view with its dims in another order."""
        ...

    def relabelled(self, array: Any, permutation: Sequence[int]) -> Any:
        """The same of an array that nothing else holds, which is no view where the library makes a difference."""
        ...

    def seed(self) -> int:
        """A signed number of 64 random bits from the generator of the library's random functions, which advances."""
        ...


class Allocation:
    """Memory that compiled code allocated; freed when the last array over it goes."""

    def __init__(self, address: int):
        self._address = address

    def __del__(self, free: Callable[[int], None] = _libc.free) -> None:  # as Python ends, modules are empty
        free(self._address)


#: Why memory is no place for results.
OVERLAP = "has elements that share memory"


def overlaps_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may share memory, as those of an expanded tensor do."""
    return any(size > 1 and stride == 0 for size, stride in zip(shape, strides, strict=True))


def raw_bytes(memory: Any, address: int, size: int) -> Any:
    """A buffer over memory that `memory` owns."""
    raw: Any = (ctypes.c_char * size).from_address(address or 1)
    raw._memory = memory  # keeps it alive
    return raw
