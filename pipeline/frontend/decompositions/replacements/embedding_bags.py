"""Bags of embeddings: sums, means and maxima of rows of a table.

torch-mlir has sums alone, without padding, does not look at the weights, and reads all rows for each bag.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces

MEAN, MAX = 1, 2


@replaces(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag(
    weight: Tensor,
    places: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """embedding_bag(table, places, offsets) → the sums of each bag's rows times their weights; for means, divided.

    For maxima see `_maxima`.
    """
    count = offsets.size(0) - int(include_last_offset)
    begun = torch.zeros(places.size(0) + 1, dtype=offsets.dtype)
    begun = begun.index_add(0, offsets[:count], torch.ones_like(offsets[:count]))
    bags = begun.cumsum(0)[: places.size(0)] - 1
    unused = torch.zeros_like(offsets)  # what a backward pass would want
    if mode == MAX:
        result, greatest = _maxima(weight, places, bags, count, padding_idx)
        return result, unused, unused.clone(), greatest
    dtype = torch.promote_types(weight.dtype, torch.float32)  # 16 bits are summed in float32
    rows = weight.index_select(0, places).to(dtype)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    if padding_idx >= 0:
        rows = torch.where((places == padding_idx).unsqueeze(1), 0, rows)
    result = torch.zeros(count, weight.size(1), dtype=dtype).index_add(0, bags, rows)
    if mode == MEAN:
        counts = (places != padding_idx).to(dtype)
        sizes = torch.zeros(count, dtype=dtype).index_add(0, bags, counts)
        result = result / sizes.clamp(min=1).unsqueeze(1)
    return result.to(weight.dtype), unused, unused.clone(), unused.clone()


def _maxima(weight: Tensor, places: Tensor, bags: Tensor, count: Any, padding_idx: int) -> tuple[Tensor, Tensor]:
    """The greatest elements of each bag's rows, 0 without any, and the places in the table of the first that are.

    A NaN is the greatest where it comes first, and counts for nothing behind others, as in eager mode.
    """
    number, width = places.size(0), weight.size(1)
    numbers = torch.arange(number, dtype=torch.int64)
    counted = places != padding_idx

    def first(of: Tensor) -> Tensor:
        """The first number in each bag for which this holds, [bags, width]; `number` for none."""
        candidates = torch.where(of, numbers.unsqueeze(1), number)
        return torch.full((count, width), number).scatter_reduce(0, by_bag, candidates, "amin")

    by_bag = bags.long().unsqueeze(1).expand(number, width)
    rows = weight.index_select(0, places)
    begins = first(counted.unsqueeze(1).expand(number, width))
    is_first = begins.index_select(0, bags) == numbers.unsqueeze(1)
    known = torch.where(counted.unsqueeze(1) & (is_first | (rows == rows)), rows, -math.inf)
    lowest = torch.full((count, width), -math.inf, dtype=weight.dtype)
    result = lowest.scatter_reduce(0, by_bag, known, "amax")
    theirs = result.index_select(0, bags)
    where = first(counted.unsqueeze(1) & ((known == theirs) | (theirs != theirs)))
    padded = torch.cat([places.long(), torch.zeros(1, dtype=torch.int64)])
    return torch.where(begins < number, result, 0.0).to(weight.dtype), padded[where]
