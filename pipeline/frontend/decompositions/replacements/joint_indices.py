"""Indexing by tensors whose sizes are known as the program runs only, by several at once, too: x[i, j]."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten


def joined(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """index(x, [i, j]) → index(x with both dims as one, [i * size + j]); NotImplemented for what torch-mlir lowers.

    Torch-mlir broadcasts no two indices whose sizes are symbolic. An index out of range becomes one behind the end of
    the joined dim, which is found when the call checks it.
    """
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    tensors = torch.broadcast_tensors(*(indices[dim] for dim in dims)) if len(dims) > 1 else ()
    if not tensors or all(isinstance(size, int) for size in tensors[0].shape):
        return NotImplemented
    if any(tensor.dtype in (torch.bool, torch.uint8) for tensor in tensors):
        return NotImplemented
    first = _place_of_selected(dims)
    others = [dim for dim in range(x.dim()) if dim not in dims]
    sizes = [x.size(dim) for dim in dims]
    x = x.permute([*others[:first], *dims, *others[first:]]).flatten(first, first + len(dims) - 1)
    return aten.index.Tensor(x, [*[None] * first, _places(tensors, sizes)])


def in_one_line(indices: list[Tensor | None], values: Tensor) -> tuple[list[Tensor | None], Tensor]:
    """index_put(x, [i: [s, t]], values: [s, t, ..]) → i: [s * t], values: [s * t, ..]; as given if sizes are known.

    Gets round a defect of torch-mlir, which collapses such indices to the size of one of their dims. Remove when
    `ConvertAtenIndexPutHackedTwinOp` multiplies the sizes.
    """
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    tensors = torch.broadcast_tensors(*(indices[dim] for dim in dims))
    rank = tensors[0].dim()
    if rank < 2 or all(isinstance(size, int) for size in tensors[0].shape):
        return indices, values
    line: list[Tensor | None] = [None] * len(indices)
    for dim, tensor in zip(dims, tensors, strict=True):
        line[dim] = tensor.reshape(-1)
    first = _place_of_selected(dims)
    return line, values.flatten(first, first + rank - 1)


def _place_of_selected(dims: Sequence[int]) -> int:
    """Where torch puts the dims of indices that are given for these dims."""
    return dims[0] if list(dims) == list(range(dims[0], dims[-1] + 1)) else 0


def _places(indices: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """The place in the joined dim for each index, counted from its end where an index is negative."""
    positive = [torch.where(index < 0, index + size, index) for index, size in zip(indices, sizes, strict=True)]
    inside = [(index >= 0) & (index < size) for index, size in zip(positive, sizes, strict=True)]
    place, count = positive[0], sizes[0]
    for index, size in zip(positive[1:], sizes[1:], strict=True):
        place, count = place * size + index, count * size
    return torch.where(functools.reduce(torch.logical_and, inside), place, count)
