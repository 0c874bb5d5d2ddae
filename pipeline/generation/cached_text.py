"""Which text the cache holds, so that a prompt that begins with it need not be computed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.generation.prompt import Prompt


class Move(NamedTuple):
    """Slots of a row that are to be put `by` slots further."""

    row: int
    begin: int
    end: int
    by: int


class CachedText:
    """The tokens whose keys and values are in the first slots of the cache.

    Attributes:
        length: how many slots hold them.
    """

    def __init__(self, batch: int, slots: int):
        self._ids = np.zeros((batch, slots), np.int64)
        self._padding = np.zeros(batch, np.int64)
        self.length = 0

    def shared(self, prompt: Prompt, rows: Sequence[int]) -> tuple[int, list[Move]]:
        """How many of a prompt's first slots have what they are to have when some of `rows` are moved, and which.

        It is fewer than the prompt has; each of the rows, as far as it is not padding, has what it is to have up to
        there.
        """
        found = prompt.length - 1
        for row in rows:
            before, after = int(self._padding[row]), int(prompt.padding[row])
            length = max(0, min(self.length - before, prompt.length - after))
            equal = _equal(self._ids[row, before : before + length], prompt.ids[row, after : after + length])
            found = min(found, after + equal)
        places = ((row, int(self._padding[row]), int(prompt.padding[row])) for row in rows)
        return found, [
            Move(row, before, before + found - after, after - before)
            for row, before, after in places
            if before != after and found > after
        ]

    def goes_on(self, prompt: Prompt, rows: Sequence[int], found: int) -> bool:
        """Whether a prompt has all that the cache has of some rows in its first slots, `found` of them."""
        padding = (prompt.padding[rows] - self._padding[rows]).tolist()
        return all(self.length + moved == found for moved in padding)

    def align(self, prompt: Prompt, rows: Sequence[int], length: int) -> None:
        """The first slots of rows hold those of a prompt now; other rows are where they were."""
        self._ids[rows, :length] = prompt.ids[rows, :length]
        self._padding = self._padding.copy()
        self._padding[rows] = prompt.padding[rows]
        self.length = length

    def cut(self, length: int, padding: np.ndarray) -> None:
        """The slots from `length` on are about to be overwritten, for rows with that much padding."""
        self.length = min(self.length, length)
        self._padding = padding

    def append(self, ids: np.ndarray) -> None:
        """The slots behind hold these tokens now, int64[batch, count]."""
        end = self.length + ids.shape[1]
        self._ids[:, self.length : end] = ids
        self.length = end

    def reorder(self, sources: np.ndarray) -> None:
        """Each row has what another one had, of the same padding; the number of that row is given, int64[rows]."""
        self._ids[: len(sources)] = self._ids[sources]


def _equal(one: np.ndarray, other: np.ndarray) -> int:
    """How many elements two arrays of one length begin with alike."""
    differ = one != other
    return int(differ.argmax()) if differ.any() else len(one)
