"""as_strided in terms of what lies in memory as one line: a part of it in another shape, or the elements at places.

torch-mlir's importer wants sizes as numbers, gathers where another shape would do, and takes a dim of one element whose
stride is another one's for that (to be removed once `extras/fx_as_strided.py` leaves such dims out).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from pipeline.errors import PipelineError
from pipeline.frontend.decompositions.replacements.table import aten, replaces
from pipeline.frontend.numbers.assumed_sizes import require


@replaces(aten.as_strided.default)
def as_strided(x: Tensor, size: list[Any], stride: list[Any], storage_offset: Any = None) -> Tensor:
    """as_strided(x, (n, 3), (1, 1)) → line of x's memory[places], with the place of each element computed.

    A place beyond the line is found when the call checks it; one in front of it would be counted from the end.
    """
    first = (x.storage_offset() if storage_offset is None else storage_offset) - x.storage_offset()
    is_known = all(isinstance(number, int) for number in (*size, *stride, *x.shape, *x.stride(), first))
    if is_known and not _has_places(x, first, size, stride):
        return NotImplemented  # of the tensor that x is a part of
    if is_known and (order := _order_in_memory(size, stride)) is not None:
        return _part_of(x, first, size, order)
    line = _in_memory(x).reshape(-1)
    for number in (first, *stride):
        require(0, number, "as_strided")
    place = torch.full([1] * len(size), 0) + first
    for dim, (count, step) in enumerate(zip(size, stride, strict=True)):
        place = place + (torch.arange(count) * step).reshape(_along(dim, len(size)))
    return aten.index.Tensor(line, [place.reshape(-1)]).reshape(size)


def _part_of(x: Tensor, first: int, size: list[int], order: list[int]) -> Tensor:
    """The elements from the one numbered `first`, in dims of these sizes that lie in memory in this order."""
    line = _in_memory(x).reshape(-1)
    count = math.prod(size)
    part = line if count == line.numel() and first == 0 else line[first : first + count]
    places = sorted(range(len(order)), key=order.__getitem__)
    return part.reshape([size[dim] for dim in order]).permute(places)


def _order_in_memory(size: list[int], stride: list[int]) -> list[int] | None:
    """The dims of a tensor without gaps as they lie in memory, outermost first; None for any other tensor."""
    order = _outermost_first(stride)
    several = [dim for dim in order if size[dim] != 1]
    is_dense = all(stride[dim] == math.prod(size[inner] for inner in several[n + 1 :]) for n, dim in enumerate(several))
    return order if is_dense and 0 not in size else None


def _outermost_first(stride: Sequence[Any]) -> list[int]:
    """Dims by their strides; those of one element, whose strides say nothing, may stand anywhere."""
    return sorted(range(len(stride)), key=lambda dim: -_hint(stride[dim]))


def _has_places(x: Tensor, first: int, size: list[int], stride: list[int]) -> bool:
    """Whether x itself, and not a tensor that it is a part of, has all elements that as_strided reads."""
    last = first + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    lies_densely = _order_in_memory(list(x.shape), list(x.stride())) is not None
    return lies_densely and first >= 0 and last < x.numel()


def _along(dim: int, rank: int) -> list[int]:
    return [-1 if axis == dim else 1 for axis in range(rank)]


def _in_memory(x: Tensor) -> Tensor:
    """The dims of x in the order in which they lie in memory; raises `PipelineError` where there are gaps."""
    dense = x.permute(_outermost_first(x.stride()))
    if not _is_dense(dense.shape, dense.stride()):
        raise PipelineError("as_strided of a tensor with gaps in memory and symbolic sizes is not supported")
    return dense


def _hint(stride: Any) -> int:
    return stride.node.hint if isinstance(stride, torch.SymInt) else stride


def _is_dense(shape: Sequence[Any], strides: Sequence[Any]) -> bool:
    several = [dim for dim, size in enumerate(shape) if not (isinstance(size, int) and size == 1)]
    return all(statically_known_true(strides[dim] == math.prod(shape[dim + 1 :])) for dim in several)
