"""The seeds of calls that have no torch: a generator of the process's own; torch's tensors come with torch's."""

from __future__ import annotations

import os
import random

_generator = random.Random()  # seeded by the operating system


def manual_seed(seed: int) -> None:
    """Sets the generator that random numbers in calls with NumPy arrays are drawn from, as `torch.manual_seed` does.

    Without it the operating system chooses, another stream in each process. A forked child starts with one of its own.
    Calls with torch's tensors draw from torch's generator.
    """
    _generator.seed(seed)


def draw() -> int:
    """A signed number of 64 random bits; any thread may ask."""
    return _generator.getrandbits(64) - 2**63


os.register_at_fork(after_in_child=_generator.seed)
