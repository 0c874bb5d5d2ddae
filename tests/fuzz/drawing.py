"""Drawing choices: a number names a program, the same on every machine."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Choices that follow from a seed."""

    def __init__(self, seed: int):
        self.seed = seed
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return self._random.randint(low, high)

    def boolean(self) -> bool:
        """True half of the time."""
        return self._random.random() < 0.5

    def choice(self, options: Iterable[T]) -> T:
        """One of the options."""
        return self._random.choice(list(options))

    def several(self, one: Callable[[], T], most: int) -> list[T]:
        """Up to `most` draws, perhaps none."""
        return [one() for _ in range(self.integer(0, most))]

    def shuffled(self, options: Iterable[T]) -> Sequence[T]:
        """All options in some order."""
        found = list(options)
        self._random.shuffle(found)
        return found
