"""Gradients of samples of images at the points of a grid: by the images, and by the points."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.grid_samples import (
    BICUBIC,
    BORDER,
    NEAREST,
    ZEROS,
    Tap,
    corners,
    elements_at,
    elements_per_point,
    indices_at,
    points_of,
    reflected,
    runs_backwards,
    taps_of,
    values_at,
)
from pipeline.frontend.decompositions.replacements.table import aten

#: What the cubic weights are made of, as in torch.
_CUBIC = -0.75


def grid_sampler_backward(
    gradient: Tensor,
    x: Tensor,
    grid: Tensor,
    mode: int,
    padding: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None]:
    """grid_sampler_backward(g, x, grid) → (g * weights, added where x was read; sums of g * x * weights' slopes).

    As eager mode has it, a point whose sample padding moves to an end of the image has no gradient, nor has any where
    the nearest element is taken.
    """
    points, sizes = points_of(grid), x.shape[2:]
    taps = taps_of(x, points, mode, padding, align_corners)
    flat = gradient.to(points.dtype).flatten(2)
    by_image = _by_image(flat, x, corners(taps, sizes)).to(x.dtype) if output_mask[0] else None
    if not output_mask[1]:
        return by_image, None
    if mode == NEAREST:
        return by_image, torch.zeros_like(grid)
    slopes = [_slopes(points[..., -1 - dim], size, mode, padding, align_corners) for dim, size in enumerate(sizes)]
    # what each corner's weight is multiplied by, summed over channels: the same whichever dim a point moves along
    factors = [(flat * values_at(x, corner)).sum(1) for corner in corners(taps, sizes)]
    along = [_along(factors, taps, slopes, dim, sizes) for dim in reversed(range(len(sizes)))]
    return by_image, torch.stack(along, -1).reshape(grid.shape).to(grid.dtype)


def _by_image(gradient: Tensor, x: Tensor, around: Sequence[Tap]) -> Tensor:
    """Each point's gradient, times weights, added to the elements that it reads."""
    result = torch.zeros(*x.shape[:2], math.prod(x.shape[2:]), dtype=gradient.dtype)
    for corner in around:
        value = gradient if corner.weight is None else gradient * corner.weight.unsqueeze(1)
        if corner.is_inside is not None:
            value = torch.where(corner.is_inside.unsqueeze(1), value, 0)
        result = aten.index_put.default(result, indices_at(x, corner), value, True)
    return result.reshape(x.shape)


def _along(
    factors: Sequence[Tensor], taps: Sequence[list[Tap]], slopes: Sequence[list[Tensor]], dim: int, sizes: Sequence[Any]
) -> Tensor:
    """The gradient by the points' coordinate along a dim, in which weights are replaced by their slopes."""
    moving = list(taps)
    moving[dim] = [tap._replace(weight=slope) for tap, slope in zip(taps[dim], slopes[dim], strict=True)]
    weights = [corner.weight for corner in corners(moving, sizes)]
    return functools.reduce(operator.add, (one * weight for one, weight in zip(factors, weights, strict=True)))


def _slopes(points: Tensor, size: Any, mode: int, padding: int, align_corners: bool) -> list[Tensor]:
    """By how much the weights of elements along a dim grow with the points' coordinate."""
    scale, at = elements_per_point(size, align_corners), elements_at(points, size, align_corners)
    if mode == BICUBIC:
        return [slope * scale for slope in _cubic_slopes(at - at.floor())]
    step = torch.ones_like(points) * scale
    if padding != ZEROS:
        if padding != BORDER:
            step = torch.where(runs_backwards(at, size, align_corners), -step, step)
            at = reflected(at, size, align_corners)
        step = torch.where((at > 0) & (at < size - 1), step, 0)
    return [-step, step]


def _cubic_slopes(after: Tensor) -> list[Tensor]:
    """The derivatives of the weights of the four elements around a point that is `after` behind the second one."""

    def near(x: Tensor) -> Tensor:
        return (3 * (_CUBIC + 2) * x - 2 * (_CUBIC + 3)) * x

    def far(x: Tensor) -> Tensor:
        return (3 * _CUBIC * x - 10 * _CUBIC) * x + 8 * _CUBIC

    return [far(after + 1), near(after), -near(1 - after), -far(2 - after)]
