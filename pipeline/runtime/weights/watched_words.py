"""Words of memory that are looked at before each call: compiled code compares hundreds of them in a fraction of a µs.

A record in memory is what that code reads; `pipeline.targets.cpu.guarded_entry` generates it.

    word 0: how many words are watched; then (address, expected value) of each

The memory at the addresses has to live for as long as the record is used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable

#: The entry that compares first: `int32_t (int64_t *slots, const int64_t *record)`. It gives 1 where a word has
#: changed, else it calls the entry, if there are slots, and gives 0.
GUARDED = "pipeline_guarded"

Guarded = Callable[[int, int], int]


class WatchedWords:
    """Words of memory, which are expected to stay as they are when this is made.

    Attributes:
        record: the address of what the guarded entry reads.
    """

    def __init__(self, addresses: Iterable[int]):
        self._places = {address: 2 * number + 1 for number, address in enumerate(dict.fromkeys(addresses))}
        self._memory = (ctypes.c_int64 * (1 + 2 * len(self._places)))(len(self._places))
        self._memory[1::2] = list(self._places)
        self.record = ctypes.addressof(self._memory)
        self.accept(self._places)

    def accept(self, addresses: Iterable[int]) -> None:
        """Expects the words at these addresses, all of which are watched, to be what they are now."""
        for address in addresses:
            self._memory[self._places[address] + 1] = ctypes.c_int64.from_address(address).value
