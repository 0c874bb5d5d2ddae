"""as_strided of sizes that are known as the program runs only, which torch-mlir's importer wants as numbers."""

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
    if all(
        isinstance(number, int)
        for number in (*size, *stride, *x.shape, 0 if storage_offset is None else storage_offset)
    ):
        return NotImplemented
    line = _in_memory(x).reshape(-1)
    first = (x.storage_offset() if storage_offset is None else storage_offset) - x.storage_offset()
    for number in (first, *stride):
        require(0, number, "as_strided")
    place = torch.full([1] * len(size), 0) + first
    for dim, (count, step) in enumerate(zip(size, stride, strict=True)):
        place = place + (torch.arange(count) * step).reshape(_along(dim, len(size)))
    return aten.index.Tensor(line, [place.reshape(-1)]).reshape(size)


def _along(dim: int, rank: int) -> list[int]:
    return [-1 if axis == dim else 1 for axis in range(rank)]


def _in_memory(x: Tensor) -> Tensor:
    """The dims of x in the order in which they lie in memory; raises `PipelineError` where there are gaps."""
    order = sorted(range(x.dim()), key=lambda dim: _hint(x.stride(dim)), reverse=True)
    dense = x.permute(order)
    if not _is_dense(dense.shape, dense.stride()):
        raise PipelineError("as_strided of a tensor with gaps in memory and symbolic sizes is not supported")
    return dense


def _hint(stride: Any) -> int:
    return stride.node.hint if isinstance(stride, torch.SymInt) else stride


def _is_dense(shape: Sequence[Any], strides: Sequence[Any]) -> bool:
    return all(statically_known_true(stride == math.prod(shape[dim + 1 :])) for dim, stride in enumerate(strides))
