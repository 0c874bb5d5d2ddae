"""as_strided in terms of what lies in memory as one line: a part of it in another shape, or the elements at places.

torch-mlir's importer wants sizes as numbers, gathers where another shape would do, and takes a dim of one element whose
stride is another one's for that (to be removed once `extras/fx_as_strided.py` leaves such dims out).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.errors import PipelineError
from pipeline.frontend.decompositions.replacements.table import aten, replaces
from pipeline.frontend.memory_order import dense_order
from pipeline.frontend.numbers.assumed_sizes import require


@replaces(aten.as_strided.default)
def as_strided(x: Tensor, size: list[Any], stride: list[Any], storage_offset: Any = None) -> Tensor:
    """as_strided(x, (n, 3), (1, 1)) → line of x's memory[places], with the place of each element computed.

    A place beyond the line is found when the call checks it; one in front of it would be counted from the end.
    """
    first = (x.storage_offset() if storage_offset is None else storage_offset) - x.storage_offset()
    is_known = all(isinstance(number, int) for number in (*size, *stride, *x.shape, *x.stride(), first))
    own = dense_order(x.shape, x.stride())
    if is_known and (own is None or not _has_places(x, first, size, stride)):
        return NotImplemented  # of the tensor that x is a part of
    if own is None:
        raise PipelineError("as_strided of a tensor with gaps in memory and symbolic sizes is not supported")
    line = x.permute(own).reshape(-1)
    if is_known and (order := dense_order(size, stride)) is not None:
        return _part_of(line, first, size, order)
    for number in (first, *stride):
        require(0, number, "as_strided")
    place = torch.full([1] * len(size), 0) + first
    for dim, (count, step) in enumerate(zip(size, stride, strict=True)):
        place = place + (torch.arange(count) * step).reshape(_along(dim, len(size)))
    return aten.index.Tensor(line, [place.reshape(-1)]).reshape(size)


def _part_of(line: Tensor, first: int, size: list[int], order: list[int]) -> Tensor:
    """The elements from the one numbered `first`, in dims of these sizes that lie in memory in this order."""
    count = math.prod(size)
    part = line if count == line.numel() else line[first : first + count]
    places = sorted(range(len(order)), key=order.__getitem__)
    return part.reshape([size[dim] for dim in order]).permute(places)


def _has_places(x: Tensor, first: int, size: list[int], stride: list[int]) -> bool:
    """Whether x itself, and not a tensor that it is a part of, has all elements that as_strided reads."""
    last = first + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    return first >= 0 and last < x.numel()


def _along(dim: int, rank: int) -> list[int]:
    return [-1 if axis == dim else 1 for axis in range(rank)]
