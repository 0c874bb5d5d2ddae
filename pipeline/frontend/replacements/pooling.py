"""Pooling of integers and in windows of several sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.replacements.table import Decomposition, aten, is_float, replaces


def _pool_integers(op: Any) -> Decomposition:
    def decomposed(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if is_float(x) or x.dtype == torch.int64:
            return NotImplemented
        values, indices = op(x.double(), *args, **kwargs)
        return values.to(x.dtype), indices

    decomposed.__doc__ = f"{op}(x: integers) → {op}(x in float64), which holds them exactly."
    return decomposed


for _op in (aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default):
    replaces(_op)(_pool_integers(_op))


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
