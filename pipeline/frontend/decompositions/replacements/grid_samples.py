"""Samples of images at the points of a grid."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._decomp.decompositions import _upsample_get_cubic_coefficients

from pipeline.frontend.decompositions.replacements.table import aten, replaces

#: Modes and paddings, as torch numbers them.
NEAREST, BICUBIC = 1, 2
ZEROS, BORDER = 0, 1


class Tap(NamedTuple):
    """For each point of a grid, an element of an image, or of one dim of it.

    Attributes:
        place: the element; one of those that there are, whatever the point.
        weight: what the element is multiplied by; None for 1.
        is_inside: whether it counts, others are 0; None where all do.
    """

    place: Tensor
    weight: Tensor | None
    is_inside: Tensor | None


@replaces(aten.grid_sampler_2d.default, aten.grid_sampler_3d.default)
def grid_sampler(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    """grid_sampler(x, grid) → the sum of elements of x at places times weights, which all channels have in common.

    Places and weights are computed in float32 for floats of 16 bits. What is outside is 0, whatever x has where it
    ends; a point that is not a number gives one, as in eager mode.
    """

    def term(corner: Tap) -> Tensor:
        value = values_at(x, corner)
        return value if corner.weight is None else value * corner.weight.unsqueeze(1)

    taps = taps_of(x, points_of(grid), mode, padding, align_corners)
    terms = [term(corner) for corner in corners(taps, x.shape[2:])]
    return functools.reduce(torch.add, terms).reshape(*x.shape[:2], *grid.shape[1:-1]).to(x.dtype)


def points_of(grid: Tensor) -> Tensor:
    """The points of a grid, one after the other: [N, points, dims of the image]."""
    return (grid.float() if grid.dtype.itemsize == 2 else grid).flatten(1, -2)


def taps_of(x: Tensor, points: Tensor, mode: int, padding: int, align_corners: bool) -> list[list[Tap]]:
    """For each dim of the images, the elements along it that the points read; points have the last dim first."""
    taps = _cubic_taps if mode == BICUBIC else functools.partial(_taps, mode=mode)
    return [
        taps(points[..., -1 - dim], size, padding=padding, align_corners=align_corners)
        for dim, size in enumerate(x.shape[2:])
    ]


def corners(taps: Sequence[Sequence[Tap]], sizes: Sequence[Any]) -> list[Tap]:
    """The elements of an image around each point: every combination of those along its dims.

    Places are in the image's elements, one after the other.
    """
    count = math.prod(sizes)
    kind = torch.int32 if isinstance(count, int) and count < 1 << 31 else torch.int64

    def corner(along: Sequence[Tap]) -> Tap:
        place = along[0].place.to(kind)
        for tap, size in zip(along[1:], sizes[1:], strict=True):
            place = place * size + tap.place.to(kind)
        weight = functools.reduce(functools.partial(_joined, torch.mul), [tap.weight for tap in along])
        is_inside = functools.reduce(functools.partial(_joined, torch.bitwise_and), [tap.is_inside for tap in along])
        return Tap(place, weight, is_inside)

    return [corner(along) for along in itertools.product(*taps)]


def indices_at(x: Tensor, corner: Tap) -> list[Tensor]:
    """The indices of an element for each point and channel, in images whose elements are one dim."""
    batch, channels = x.shape[:2]
    return [
        torch.arange(batch).view(batch, 1, 1),
        torch.arange(channels).view(1, channels, 1),
        corner.place.unsqueeze(1),
    ]


def values_at(x: Tensor, corner: Tap) -> Tensor:
    """An element of the images for each point and channel, [N, channels, points]; 0 for those outside."""
    lines = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    value = aten.index.Tensor(lines, indices_at(x, corner))
    return value if corner.is_inside is None else torch.where(corner.is_inside.unsqueeze(1), value, 0)


def _joined(join: Callable[[Tensor, Tensor], Tensor], one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Both, or the one that there is."""
    if one is None or other is None:
        return other if one is None else one
    return join(one, other)


def elements_at(points: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Coordinates of elements, from -1 to 1 for the first to the last one or for the ends of these.

    Rounded as in eager mode, so that the same points are inside.
    """
    at = (points + 1) * elements_per_point(size, align_corners)
    return at if align_corners else at - 0.5


def elements_per_point(size: Any, align_corners: bool) -> Any:
    """How many elements a point moves by when its coordinate grows by one."""
    return size * 0.5 - 0.5 if align_corners else size * 0.5


def _padded(at: Tensor, size: Any, padding: int, align_corners: bool) -> Tensor:
    """Coordinates of elements, those outside of the image at the ones that stand for them, if any do."""
    if padding == ZEROS:
        return at
    return limited(at if padding == BORDER else reflected(at, size, align_corners), size)


def limited(at: Tensor, size: Any) -> Tensor:
    """Coordinates of the nearest elements that there are: the first one for what is not a number.

    By comparisons, from which `fold-integer-ranges` sees that these places need no check.
    """
    at = torch.where(at > 0, at, 0)
    last = size - 1 if isinstance(size, int) else torch.full([], size - 1, dtype=at.dtype)
    return torch.where(at < last, at, last)


def reflected(at: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Coordinates reflected at the first and the last element, or at the ends of these, as often as it takes."""
    low, span = _first_and_span(size, align_corners)
    rest = torch.fmod((at - low).abs(), span)
    return torch.where(_is_odd(at, low, span), span + low - rest, rest + low)


def runs_backwards(at: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Whether a coordinate that is reflected falls where it grows."""
    low, span = _first_and_span(size, align_corners)
    return _is_odd(at, low, span) != (at < low)


def _first_and_span(size: Any, align_corners: bool) -> tuple[float, Any]:
    """Where coordinates are reflected first, and how far behind that again."""
    return (0.0, torch.sym_max(size - 1, 1)) if align_corners else (-0.5, size)


def _is_odd(at: Tensor, low: float, span: Any) -> Tensor:
    return torch.fmod(torch.floor((at - low).abs() / span), 2) != 0


def _taps(points: Tensor, size: Any, mode: int, padding: int, align_corners: bool) -> list[Tap]:
    """The element nearest to each point, or those on both sides of it."""
    at = _padded(elements_at(points, size, align_corners), size, padding, align_corners)
    if mode == NEAREST:
        return [_tap(at.round(), None, size, padding)]
    first = at.floor()
    after = at - first
    return [_tap(first, 1 - after, size, padding), _tap(first + 1, after, size, ZEROS)]


def _cubic_taps(points: Tensor, size: Any, padding: int, align_corners: bool) -> list[Tap]:
    """The two elements on each side of each point: padding is of elements here, since the weights go by the point."""
    at = elements_at(points, size, align_corners)
    first = at.floor()
    places = [_padded(first + step, size, padding, align_corners) for step in (-1, 0, 1, 2)]
    weights = _upsample_get_cubic_coefficients(at - first)
    return [_tap(place, weight, size, padding) for place, weight in zip(places, weights, strict=True)]


def _tap(at: Tensor, weight: Tensor | None, size: Any, padding: int) -> Tap:
    """The element at a coordinate; where anything pads, all coordinates are of elements."""
    if padding != ZEROS:
        return Tap(at, weight, None)
    place = limited(at, size)
    return Tap(place, weight, place == at)
