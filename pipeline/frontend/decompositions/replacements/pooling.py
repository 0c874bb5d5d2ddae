"""Pooling of integers and in windows of several sizes, and gradients of maxima."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import Decomposition, aten, is_float, replaces


def _pool(op: Any, rank: int) -> Decomposition:
    def decomposed(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.dim() == rank + 1:
            values, indices = op(x.unsqueeze(0), *args, **kwargs)
            return values.squeeze(0), indices.squeeze(0)
        if is_float(x) or x.dtype == torch.int64:
            return NotImplemented
        values, indices = op(x.double(), *args, **kwargs)
        return values.to(x.dtype), indices

    decomposed.__doc__ = f"{op}(x: integers) → {op}(x in float64), which holds them exactly; with a batch of one."
    return decomposed


for _op, _rank in ((aten.max_pool2d_with_indices.default, 2), (aten.max_pool3d_with_indices.default, 3)):
    replaces(_op)(_pool(_op, _rank))


def _scattered(gradient: Tensor, x: Tensor, indices: Tensor, rank: int) -> Tensor:
    """The sum of the gradients of the windows that an element is the maximum of; sums of 16 bits are in float32."""
    wide = torch.float32 if x.dtype.itemsize == 2 else x.dtype
    planes = x.flatten(-rank)
    sums = torch.zeros(planes.shape, dtype=wide).scatter_add(
        -1, indices.flatten(-rank), gradient.flatten(-rank).to(wide)
    )
    return sums.to(x.dtype).view(x.shape)


@replaces(aten.max_pool2d_with_indices_backward.default)
def max_pool2d_backward(gradient: Tensor, x: Tensor, *options: Any) -> Tensor:
    """max_pool2d_with_indices_backward(g, x, .., indices) → zeros.scatter_add(indices, g), plane by plane."""
    return _scattered(gradient, x, options[-1], 2)


@replaces(aten.max_pool3d_with_indices_backward.default)
def max_pool3d_backward(gradient: Tensor, x: Tensor, *options: Any) -> Tensor:
    """max_pool3d_with_indices_backward(g, x, .., indices) → likewise, volume by volume."""
    return _scattered(gradient, x, options[-1], 3)


@replaces(aten.adaptive_max_pool2d_backward.default)
def adaptive_max_pool2d_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    """adaptive_max_pool2d_backward(g, x, indices) → likewise, plane by plane."""
    return _scattered(gradient, x, indices, 2)


@replaces(aten.adaptive_max_pool3d_backward.default)
def adaptive_max_pool3d_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    """adaptive_max_pool3d_backward(g, x, indices) → likewise, volume by volume."""
    return _scattered(gradient, x, indices, 3)


def adaptive_max_pool2d(x: Tensor, output_size: list[int]) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool2d(x, (h, w)) → the maxima of h * w slices, where windows differ in size."""
    if all(size % wanted == 0 for size, wanted in zip(x.shape[-2:], output_size, strict=True)):
        return NotImplemented
    rows, columns = (_windows(x.size(dim), output_size[dim]) for dim in (-2, -1))
    pools = [[_window_max(x, row, column) for column in columns] for row in rows]
    values, places = (torch.stack([torch.stack([pool[n] for pool in line], -1) for line in pools], -2) for n in (0, 1))
    return values, places


def _windows(size: int, count: int) -> list[tuple[int, int]]:
    """[first, last) of each of `count` windows over `size` elements."""
    return [(number * size // count, -(-(number + 1) * size // count)) for number in range(count)]


def _window_max(x: Tensor, row: tuple[int, int], column: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """The maximum of x[.., row, column] and its place in the plane."""
    width = column[1] - column[0]
    values, place = x[..., row[0] : row[1], column[0] : column[1]].flatten(-2).max(-1)
    down = torch.div(place, width, rounding_mode="floor")
    return values, (down + row[0]) * x.size(-1) + (place - down * width + column[0])
