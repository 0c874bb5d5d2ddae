"""What code that times its kernels writes to: a sum and a count for each site, and the first events one by one.

    word 0: how many events there were, as far as there was room; word 1: how many there is room for;
    words 2 and 3: the addresses of functions that are called with the site as a run begins and ends, or 0;
    then the nanoseconds of each site, then the runs of each, then (site, start, end) of each event.

Starts and ends are those of the monotonic clock, in nanoseconds.
"""

from __future__ import annotations

import threading

import numpy as np

#: How many events there is room for; loops with more are known by their sums.
EVENTS = 1 << 15

BEGIN_HOOK, END_HOOK = 2, 3

HEADER_WORDS = 4


class Record(threading.local):
    """A record of the calling thread's.

    Attributes:
        address, words: where it lies, and its size in 64-bit words.
    """

    def __init__(self, sites: int):
        self._sites = sites
        self.words = HEADER_WORDS + 2 * sites + 3 * EVENTS
        self._memory = np.zeros(self.words, np.int64)
        self._memory[1] = EVENTS
        self.address = self._memory.ctypes.data

    def clear(self) -> None:
        """Forgets everything."""
        self._memory[0] = 0
        self._memory[HEADER_WORDS : HEADER_WORDS + 2 * self._sites] = 0

    def call(self, begin: int, end: int) -> None:
        """Has functions called around each run from now on, by their addresses; 0 for none."""
        self._memory[BEGIN_HOOK], self._memory[END_HOOK] = begin, end

    def nanoseconds(self) -> list[int]:
        """How long each site took."""
        return self._memory[HEADER_WORDS : HEADER_WORDS + self._sites].tolist()

    def runs(self) -> list[int]:
        """How often each site ran."""
        start = HEADER_WORDS + self._sites
        return self._memory[start : start + self._sites].tolist()

    def events(self) -> list[tuple[int, int, int]]:
        """(site, start, end) of the first `EVENTS` runs."""
        start = HEADER_WORDS + 2 * self._sites
        events = self._memory[start : start + 3 * self._memory[0]].reshape(-1, 3)
        return [(site, begin, end) for site, begin, end in events.tolist()]
