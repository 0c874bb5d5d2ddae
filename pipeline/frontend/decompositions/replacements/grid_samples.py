"""Samples of images at the points of a grid."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from torch._decomp.decompositions import _upsample_get_cubic_coefficients

from pipeline.frontend.decompositions.replacements.table import aten, replaces

_NEAREST, _BICUBIC = 1, 2
_ZEROS, _BORDER = 0, 1

#: For each point of a grid, along one dim of an image: places, and what the elements there are multiplied by.
_Taps = list[tuple[Tensor, Tensor]]


@replaces(aten.grid_sampler_2d.default)
def grid_sampler_2d(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    """grid_sampler_2d(x, grid) → the sum of elements of x at places times weights, which all channels have in common.

    Places and weights are computed in float32 for floats of 16 bits. What is outside has a weight of 0.
    """
    wide = grid.float() if grid.dtype.itemsize == 2 else grid
    batch, channels, height, width = x.shape
    kind = torch.int32 if isinstance(height * width, int) and height * width < 1 << 31 else torch.int64
    taps = _cubic_taps if mode == _BICUBIC else functools.partial(_taps, mode=mode)
    across, down = (
        taps(wide[..., dim], size, padding=padding, align_corners=align_corners, kind=kind)
        for dim, size in ((0, width), (1, height))
    )
    images, planes = torch.arange(batch).view(batch, 1, 1), torch.arange(channels).view(1, channels, 1)
    lines = x.reshape(batch, channels, height * width)
    terms = [
        aten.index.Tensor(lines, [images, planes, (row * width + column).flatten(1).unsqueeze(1)])
        * (of_row * of_column).flatten(1).unsqueeze(1)
        for row, of_row in down
        for column, of_column in across
    ]
    return functools.reduce(torch.add, terms).reshape(batch, channels, *grid.shape[1:3]).to(x.dtype)


def _elements(points: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Coordinates of elements, from -1 to 1 for the first to the last one or for the ends of these."""
    scale = (size * 0.5 - 0.5) if align_corners else size * 0.5
    return points * scale + (size * 0.5 - 0.5)


def _padded(at: Tensor, size: Any, padding: int, align_corners: bool) -> Tensor:
    """Coordinates of elements, those outside of the image at the ones that stand for them, if any do."""
    if padding == _ZEROS:
        return at
    return torch.clamp(at if padding == _BORDER else _reflected(at, size, align_corners), 0, size - 1)


def _reflected(at: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Coordinates reflected at the first and the last element, or at the ends of these, as often as it takes."""
    low, span = (0.0, torch.sym_max(size - 1, 1)) if align_corners else (-0.5, size)
    distance = (at - low).abs()
    rest = torch.fmod(distance, span)
    is_odd = torch.fmod(torch.floor(distance / span), 2) != 0
    return torch.where(is_odd, span + low - rest, rest + low)


def _taps(points: Tensor, size: Any, mode: int, padding: int, align_corners: bool, kind: torch.dtype) -> _Taps:
    """The element nearest to each point, or those on both sides of it."""
    at = _padded(_elements(points, size, align_corners), size, padding, align_corners)
    if mode == _NEAREST:
        return [_tap(at.round(), torch.ones_like(at), size, kind)]
    first = at.floor()
    return [_tap(first, first + 1 - at, size, kind), _tap(first + 1, at - first, size, kind)]


def _cubic_taps(points: Tensor, size: Any, padding: int, align_corners: bool, kind: torch.dtype) -> _Taps:
    """The two elements on each side of each point: padding is of elements here, since the weights go by the point.

    A point that is not a number has weights that are none.
    """
    at = _elements(points, size, align_corners)
    first = at.floor()
    places = [_padded(first + step, size, padding, align_corners) for step in (-1, 0, 1, 2)]
    inside = [_tap(place, torch.ones_like(at), size, kind) for place in places]
    weights = _upsample_get_cubic_coefficients(at - first)
    return [(place, one * weight) for (place, one), weight in zip(inside, weights, strict=True)]


def _tap(at: Tensor, weight: Tensor, size: Any, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    is_inside = (at >= 0) & (at < size)
    return torch.where(is_inside, at, 0).to(kind), torch.where(is_inside, weight, 0)
