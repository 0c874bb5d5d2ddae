"""Adaptive pooling of sizes that are known as the program runs only.

torch's own decompositions ask how the sizes divide, and compile in what holds for the example. Here window n of
`wanted` over a size s is [n * s // wanted, ceil((n + 1) * s / wanted)), as a mask of the elements that is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from pipeline.frontend.decompositions.replacements.pooling import adaptive_max_pool2d as of_known_sizes
from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.adaptive_avg_pool1d.default, aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool(x: Tensor, output_size: list[int]) -> Tensor:
    """adaptive_avg_pool(x: [.., h, w], (a, b)) → sums under masks of the windows, along one dim after the other."""
    if _has_no_windows(output_size):
        return _of_no_windows(x, output_size)
    if not _is_symbolic(x, output_size):
        return _averages_of_known_sizes(x, output_size)
    for dim, wanted in enumerate(output_size, -len(output_size)):
        inside = windows(x.size(dim), wanted)
        total = torch.where(_beside(inside, dim), x.unsqueeze(dim - 1), 0).sum(dim)
        x = total / _beside(inside.sum(1, keepdim=True), dim).squeeze(dim)
    return x


def _averages_of_known_sizes(x: Tensor, output_size: list[int]) -> Tensor:
    """As torch takes it apart in two dims, and one dim as two of them; torch-mlir lowers three."""
    in_two_dims = decomposition_table[aten._adaptive_avg_pool2d.default]
    if len(output_size) == 1:
        return in_two_dims(x.unsqueeze(-2), [1, *output_size]).squeeze(-2)
    return in_two_dims(x, output_size) if len(output_size) == 2 else NotImplemented


@replaces(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(x: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool(x: [.., h, w], (a, b)) → maxima under masks of the windows, and their places in the plane."""
    if _has_no_windows(output_size):
        values = _of_no_windows(x, output_size)
        return values, values.to(torch.int64)
    if not _is_symbolic(x, output_size):
        return of_known_sizes(x, output_size) if len(output_size) == 2 else NotImplemented
    greatest, least = x, _least(x.dtype)
    for dim, wanted in enumerate(output_size, -len(output_size)):
        inside = _beside(windows(x.size(dim), wanted), dim)
        greatest = torch.where(inside, greatest.unsqueeze(dim - 1), least).amax(dim)
    return greatest, _places(x, greatest, output_size)


def _has_no_windows(output_size: Sequence[Any]) -> bool:
    return any(isinstance(size, int) and size == 0 for size in output_size)


def _of_no_windows(x: Tensor, output_size: Sequence[Any]) -> Tensor:
    return x.new_zeros([*x.shape[: -len(output_size)], *output_size])


def _is_symbolic(x: Tensor, output_size: Sequence[Any]) -> bool:
    return not all(isinstance(size, int) for size in x.shape[-len(output_size) :])


def windows(size: Any, wanted: int) -> Tensor:
    """Which elements each window has: [wanted, size], bool."""
    number, place = torch.arange(wanted).unsqueeze(1), torch.arange(size)
    first = torch.div(number * size, wanted, rounding_mode="floor")
    last = torch.div(number * size + size + wanted - 1, wanted, rounding_mode="floor")
    return (place >= first) & (place < last)


def _beside(inside: Tensor, dim: int) -> Tensor:
    """[wanted, size] as the dims `dim - 1` and `dim` of a larger tensor, counted from its end."""
    return inside.reshape([*inside.shape, *[1] * (-1 - dim)])


def _least(dtype: torch.dtype) -> float:
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _places(x: Tensor, greatest: Tensor, output_size: list[int]) -> Tensor:
    """The place of each maximum in the plane: the first one in the window, or the last one of a NaN."""
    rank = len(output_size)
    inside = torch.ones((), dtype=torch.bool)
    for axis, (size, wanted) in enumerate(zip(x.shape[-rank:], output_size, strict=True)):
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = wanted, size
        inside = inside & windows(size, wanted).reshape(shape)
    planes = x[(..., *[None] * rank, *[slice(None)] * rank)]
    maxima = greatest[(..., *[None] * rank)]
    count = math.prod(x.shape[-rank:])
    place = torch.arange(count).reshape(x.shape[-rank:])
    dims = list(range(-rank, 0))
    first = torch.where(inside & (planes == maxima), place, count).amin(dims)
    last_of_nan = torch.where(inside & planes.isnan(), place, -1).amax(dims)
    return torch.where(greatest.isnan(), last_of_nan, first)
