"""Which text the cache holds, so that a prompt that begins with it need not be computed again."""

from __future__ import annotations

import numpy as np

from pipeline.generation.prompt import Prompt


class CachedText:
    """The tokens whose keys and values are in the first slots of the cache.

    Attributes:
        length: how many slots hold them.
    """

    def __init__(self, batch: int, slots: int):
        self._ids = np.zeros((batch, slots), np.int64)
        self._padding = np.zeros(batch, np.int64)
        self.length = 0

    def shared(self, prompt: Prompt) -> int:
        """How many of a prompt's first slots have what they are to have; fewer than the prompt has, in all rows."""
        if not np.array_equal(prompt.padding, self._padding):
            return 0
        length = min(self.length, prompt.length)
        is_padding = np.arange(length) < prompt.padding[:, None]
        same = ((prompt.ids[:, :length] == self._ids[:, :length]) | is_padding).all(0)
        found = length if same.all() else int(same.argmin())
        return min(found, prompt.length - 1)

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
