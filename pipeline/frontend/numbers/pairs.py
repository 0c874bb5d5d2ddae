"""All pairs of rows, of which there may be any number: `torch.triu_indices` has the number of the example."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def pairs(count: Any, with_equal: bool = False) -> tuple[Tensor, Tensor]:
    """The numbers i and j of all pairs with i < j < count, or i <= j: int64 each, in the order of i, then of j."""
    if isinstance(count, int):
        first, second = torch.triu_indices(count, count, 0 if with_equal else 1).unbind(0)
        return first, second
    rows = count + 1 if with_equal else count
    place = torch.arange(rows * (rows - 1) // 2, dtype=torch.int64)
    root = ((2 * rows - 1) * (2 * rows - 1) - 8 * place.double()).sqrt()  # of whole numbers, exact for 10 million rows
    first = ((2 * rows - 1 - root) / 2).long()
    begin = first * (2 * rows - 1 - first) // 2
    return first, place - begin + first + (0 if with_equal else 1)
