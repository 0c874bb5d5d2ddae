"""Shapes and memory layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.constant_pad_nd.default)
def pad(x: Tensor, padding: list[int], value: Any = 0) -> Tensor:
    """pad(x, (-1, 2)) → pad(slice(x, 1, ..), (0, 2))."""
    if not any(isinstance(amount, int) and amount < 0 for amount in padding):
        return NotImplemented
    for number in range(len(padding) // 2):
        dim = x.dim() - 1 - number
        first, last = (max(0, -amount) for amount in padding[2 * number : 2 * number + 2])
        x = x.narrow(dim, first, x.size(dim) - first - last)
    return aten.constant_pad_nd.default(x, [max(0, amount) for amount in padding], value)


@replaces(aten.roll.default)
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """roll(x, n) → roll(flatten(x), n, 0) in the shape of x; further than a size → by the remainder of it.

    Along a symbolic size s element (i - n) % s is chosen: two parts, one behind the other, would be other ones where n
    is a multiple of s. A number stays.
    """
    if x.dim() == 0:
        return x.clone()
    if not dims:
        return aten.roll.default(x.flatten(), shifts, [0]).view(x.shape)
    if all(_is_within(shift, x.shape[dim]) for shift, dim in zip(shifts, dims, strict=True)):
        return NotImplemented
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        if isinstance(size, int) and isinstance(shift, int):
            x = aten.roll.default(x, [shift % size if size else 0], [dim])
        else:
            x = x.index_select(dim, (torch.arange(size) - shift).remainder(size))
    return x


def _is_within(shift: Any, size: Any) -> bool:
    """Whether both are known, and torch-mlir finds both parts in the tensor."""
    return isinstance(shift, int) and isinstance(size, int) and -size <= shift <= size


@replaces(aten.empty_strided.default)
def empty_strided(size: list[int], stride: list[int], **kwargs: Any) -> Tensor:
    """empty_strided(size, ..) → empty(size): strides mean nothing in functional code."""
    return torch.empty(size, dtype=kwargs.get("dtype"), device=kwargs.get("device"))


@replaces(aten.new_empty_strided.default)
def new_empty_strided(x: Tensor, size: list[int], stride: list[int], **kwargs: Any) -> Tensor:
    """new_empty_strided(x, size, ..) → new_empty(x, size), likewise."""
    return x.new_empty(size, **kwargs)


@replaces(aten.as_strided_copy.default)
def as_strided_copy(x: Tensor, size: list[int], stride: list[int], storage_offset: int | None = None) -> Tensor:
    """as_strided_copy(x, ..) → clone(as_strided(x, ..))."""
    return torch.as_strided(x, size, stride, storage_offset).clone()


@replaces(aten.narrow_copy.default)
def narrow_copy(x: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    """narrow_copy(x, dim, start, n) → clone(narrow(x, dim, start, n))."""
    return x.narrow(dim, start, length).clone()
