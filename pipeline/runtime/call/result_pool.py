"""The memory of large results: what no tensor holds any more takes the next call's.

Fresh memory costs a page fault for every few kilobytes that are written to it first, which for results of elementwise
models is more than the arithmetic. So the memory of a result that has died is kept for the next call.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.interface.aligned_memory import Arena, byte_size
from pipeline.runtime.interface.signature import TensorType

#: Smaller results, in bytes: `malloc` has memory for them that was used before.
SMALL = 1 << 18


class ResultMemory:
    """Hands out tensors for results.

    What is kept while no result lives is never more than the results of one call take. Several threads may use it.
    """

    def __init__(self, most: int):
        self._most = most
        self._free: dict[int, list[Arena]] = {}  # by size; a list takes and gives in one step, whatever the thread

    @property
    def kept(self) -> int:
        """How many bytes wait for the next call."""
        return sum(size * len(free) for size, free in list(self._free.items()))

    def tensor(self, library: ArrayLibrary, shape: Sequence[int], dtype: str) -> Any:
        """A row-major tensor with undefined elements, which nothing else that is alive shares memory with."""
        if is_small(shape, dtype):
            return library.empty(shape, dtype)
        lease = _Lease(self._take(_bytes(shape, dtype)), self)
        return library.adopt(lease, lease.address, shape, dtype)

    def _take(self, size: int) -> Arena:
        try:
            return self._free[size].pop()
        except (KeyError, IndexError):
            return Arena(size)

    def give_back(self, arena: Arena) -> None:
        """Keeps memory that nothing uses any more, or frees it if enough is kept."""
        if self.kept + arena.size <= self._most:
            self._free.setdefault(arena.size, []).append(arena)


def is_small(shape: Sequence[int], dtype: str) -> bool:
    """Whether a result gets its memory from its library."""
    return _bytes(shape, dtype) < SMALL


def _bytes(shape: Sequence[int], dtype: str) -> int:
    return byte_size(TensorType(dtype, tuple(shape)))


class _Lease:
    """What the tensors over one piece of memory hold; when the last one goes, the memory goes back."""

    def __init__(self, arena: Arena, owner: ResultMemory):
        self.address = arena.address
        self._arena = arena
        self._owner = weakref.ref(owner)

    def __del__(self) -> None:
        owner = self._owner()
        if owner is not None:
            owner.give_back(self._arena)
