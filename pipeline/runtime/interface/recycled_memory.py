"""Memory that is used again once nothing holds it any more.

Fresh memory costs a page fault for every few kilobytes that are written to it first.
"""

from __future__ import annotations

import weakref

from pipeline.runtime.interface.aligned_memory import Arena


class RecycledMemory:
    """Lends memory, and keeps what comes back for the next one who asks for as much. Several threads may use it."""

    def __init__(self, most: int):
        """`most`: how many bytes are kept while nobody holds them."""
        self._most = most
        self._free: dict[int, list[Arena]] = {}  # by size; a list takes and gives in one step, whatever the thread

    @property
    def kept(self) -> int:
        """How many bytes wait for the next one."""
        return sum(size * len(free) for size, free in list(self._free.items()))

    def lease(self, size: int) -> Lease:
        """So many bytes, with undefined contents, which nothing else that is alive has."""
        try:
            arena = self._free[size].pop()
        except (KeyError, IndexError):
            arena = Arena(size)
        return Lease(arena, self)

    def give_back(self, arena: Arena) -> None:
        """Keeps memory that nothing uses any more, or frees it if enough is kept."""
        if self.kept + arena.size <= self._most:
            self._free.setdefault(arena.size, []).append(arena)


class Lease:
    """`size` bytes from `address` on, which is a multiple of `ALIGNMENT`; when this goes, they go back."""

    def __init__(self, arena: Arena, owner: RecycledMemory):
        self.address, self.size = arena.address, arena.size
        self._arena = arena
        self._owner = weakref.ref(owner)

    def __del__(self) -> None:
        owner = self._owner()
        if owner is not None:
            owner.give_back(self._arena)
