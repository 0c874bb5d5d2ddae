"""Samples of images at the points of a grid."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._decomp.decompositions import _upsample_get_cubic_coefficients

from pipeline.frontend.decompositions.replacements.table import aten, replaces

_NEAREST, _BICUBIC = 1, 2
_ZEROS, _BORDER = 0, 1


class _Tap(NamedTuple):
    """For each point of a grid, an element along one dim of an image.

    Attributes:
        place: the element; one of those that there are, whatever the point.
        weight: what the element is multiplied by; None for 1.
        is_inside: whether it counts, others are 0; None where all do.
    """

    place: Tensor
    weight: Tensor | None
    is_inside: Tensor | None


@replaces(aten.grid_sampler_2d.default)
def grid_sampler_2d(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    """grid_sampler_2d(x, grid) → the sum of elements of x at places times weights, which all channels have in common.

    Places and weights are computed in float32 for floats of 16 bits. What is outside is 0, whatever x has where it
    ends; a point that is not a number gives one, as in eager mode.
    """
    points = (grid.float() if grid.dtype.itemsize == 2 else grid).flatten(1, 2)
    batch, channels, height, width = x.shape
    kind = torch.int32 if isinstance(height * width, int) and height * width < 1 << 31 else torch.int64
    taps = _cubic_taps if mode == _BICUBIC else functools.partial(_taps, mode=mode)
    across, down = (
        taps(points[..., dim], size, padding=padding, align_corners=align_corners)
        for dim, size in ((0, width), (1, height))
    )
    images, planes = torch.arange(batch).view(batch, 1, 1), torch.arange(channels).view(1, channels, 1)
    lines = x.reshape(batch, channels, height * width)

    def term(row: _Tap, column: _Tap) -> Tensor:
        place = row.place.to(kind) * width + column.place.to(kind)
        value = aten.index.Tensor(lines, [images, planes, place.unsqueeze(1)])
        is_inside = _joined(torch.bitwise_and, row.is_inside, column.is_inside)
        if is_inside is not None:
            value = torch.where(is_inside.unsqueeze(1), value, 0)
        weight = _joined(torch.mul, row.weight, column.weight)
        return value if weight is None else value * weight.unsqueeze(1)

    terms = [term(row, column) for row in down for column in across]
    return functools.reduce(torch.add, terms).reshape(batch, channels, *grid.shape[1:3]).to(x.dtype)


def _joined(join: Callable[[Tensor, Tensor], Tensor], one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Both, or the one that there is."""
    if one is None or other is None:
        return other if one is None else one
    return join(one, other)


def _elements(points: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Coordinates of elements, from -1 to 1 for the first to the last one or for the ends of these.

    Rounded as in eager mode, so that the same points are inside.
    """
    if align_corners:
        return (points + 1) * (size * 0.5 - 0.5)
    return (points + 1) * (size * 0.5) - 0.5


def _padded(at: Tensor, size: Any, padding: int, align_corners: bool) -> Tensor:
    """Coordinates of elements, those outside of the image at the ones that stand for them, if any do."""
    if padding == _ZEROS:
        return at
    return _limited(at if padding == _BORDER else _reflected(at, size, align_corners), size)


def _limited(at: Tensor, size: Any) -> Tensor:
    """Coordinates of the nearest elements that there are: the first one for what is not a number.

    By comparisons, from which `fold-integer-ranges` sees that these places need no check.
    """
    at = torch.where(at > 0, at, 0)
    last = size - 1 if isinstance(size, int) else torch.full([], size - 1, dtype=at.dtype)
    return torch.where(at < last, at, last)


def _reflected(at: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Coordinates reflected at the first and the last element, or at the ends of these, as often as it takes."""
    low, span = (0.0, torch.sym_max(size - 1, 1)) if align_corners else (-0.5, size)
    distance = (at - low).abs()
    rest = torch.fmod(distance, span)
    is_odd = torch.fmod(torch.floor(distance / span), 2) != 0
    return torch.where(is_odd, span + low - rest, rest + low)


def _taps(points: Tensor, size: Any, mode: int, padding: int, align_corners: bool) -> list[_Tap]:
    """The element nearest to each point, or those on both sides of it."""
    at = _padded(_elements(points, size, align_corners), size, padding, align_corners)
    if mode == _NEAREST:
        return [_tap(at.round(), None, size, padding)]
    first = at.floor()
    after = at - first
    return [_tap(first, 1 - after, size, padding), _tap(first + 1, after, size, _ZEROS)]


def _cubic_taps(points: Tensor, size: Any, padding: int, align_corners: bool) -> list[_Tap]:
    """The two elements on each side of each point: padding is of elements here, since the weights go by the point."""
    at = _elements(points, size, align_corners)
    first = at.floor()
    places = [_padded(first + step, size, padding, align_corners) for step in (-1, 0, 1, 2)]
    weights = _upsample_get_cubic_coefficients(at - first)
    return [_tap(place, weight, size, padding) for place, weight in zip(places, weights, strict=True)]


def _tap(at: Tensor, weight: Tensor | None, size: Any, padding: int) -> _Tap:
    """The element at a coordinate; where anything pads, all coordinates are of elements."""
    if padding != _ZEROS:
        return _Tap(at, weight, None)
    place = _limited(at, size)
    return _Tap(place, weight, place == at)
