"""Resize and Upsample: each axis by weights of its neighbours, or by torch's own where that says the same."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op


@op("Upsample", as_given=(1,))
def upsample(call: NodeCall, x: torch.Tensor, scales: Any = None) -> torch.Tensor:
    """Larger by factors."""
    factors = call.numbers(scales, "scales") or []
    sizes = [math.floor(size * factor) for size, factor in zip(x.shape, factors, strict=True)]
    return _resized(call, x, list(range(x.dim())), sizes, factors, None, "asymmetric", "floor")


@op("Resize", as_given=(1, 2, 3))
def resize(call: NodeCall, x: torch.Tensor, roi: Any = None, scales: Any = None, sizes: Any = None) -> torch.Tensor:
    """To sizes, or by factors."""
    if call.version < 11:  # version 10 has no region of interest
        roi, scales, sizes = None, roi, None
    axes = [axis % x.dim() for axis in call.get("axes") or range(x.dim())]
    given = call.numbers(sizes)
    own = [x.shape[axis] for axis in axes]
    if given:
        given, factors = _kept_ratio(call, own, given)
    else:
        factors = call.numbers(scales) or []
        given = [_floor(size * factor) for size, factor in zip(own, factors, strict=True)]
    mode = call.get("coordinate_transformation_mode", "asymmetric" if call.version < 11 else "half_pixel")
    nearest = call.get("nearest_mode", "floor" if call.version < 11 else "round_prefer_floor")
    region = call.numbers(roi) if mode == "tf_crop_and_resize" else None
    return _resized(call, x, axes, given, factors, region, mode, nearest)


def _floor(value: Any) -> Any:
    return math.floor(value) if isinstance(value, (int, float)) else torch.sym_int(value)


def _kept_ratio(call: NodeCall, own: list[Any], sizes: list[Any]) -> tuple[list[Any], list[Any]]:
    """The sizes and factors, by the policy of aspect ratios."""
    factors = [size / before for size, before in zip(sizes, own, strict=True)]
    policy = call.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return sizes, factors
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [math.floor(factor * before + 0.5) for before in own], [factor] * len(own)


def _resized(
    call: NodeCall,
    x: torch.Tensor,
    axes: list[int],
    sizes: list[Any],
    factors: list[Any],
    region: list[float] | None,
    mode: str,
    nearest: str,
) -> torch.Tensor:
    changed = [at for at in range(len(axes)) if not _is_same(x.shape[axes[at]], sizes[at], factors[at], region)]
    if not changed:
        return x
    by_torch = _by_torch(call, x, [axes[at] for at in changed], [sizes[at] for at in changed], factors, mode, nearest)
    if by_torch is not None:
        return by_torch
    dtype = x.dtype
    outside = torch.zeros((), dtype=torch.bool)
    for at in changed:
        bounds = None if region is None else (region[at], region[at + len(axes)])
        x, out = _axis(call, x, axes[at], sizes[at], factors[at], bounds, mode, nearest)
        shape = [-1 if axis == axes[at] else 1 for axis in range(x.dim())]
        outside = outside | out.reshape(shape)
    if region is not None:
        x = torch.where(outside, call.get("extrapolation_value", 0.0), x)
    return x if x.dtype == dtype else (torch.round(x) if not dtype.is_floating_point else x).to(dtype)


def _is_same(before: Any, after: Any, factor: Any, region: Any) -> bool:
    known = isinstance(before, int) and isinstance(after, int)
    return region is None and known and before == after and float(factor) == 1.0


def _by_torch(
    call: NodeCall, x: Any, axes: Any, sizes: Any, factors: Any, mode: str, nearest: str
) -> torch.Tensor | None:
    """By F.interpolate, where that is the same: the spatial dims of images, sizes and factors that agree."""
    spatial = list(range(2, x.dim()))
    if x.dim() not in (3, 4, 5) or sorted(axes) != spatial[-len(axes) :] or not x.is_floating_point():
        return None
    if call.get("antialias") or call.get("exclude_outside"):
        return None
    targets = dict(zip(axes, sizes, strict=True))
    wanted = [targets.get(axis, x.shape[axis]) for axis in spatial]
    whole = all(
        isinstance(factor, (int, float)) and isinstance(x.shape[axis], int) and factor * x.shape[axis] == targets[axis]
        for axis, factor in zip(axes, factors[-len(axes) :], strict=True)
    )
    kind = call.get("mode", "nearest")
    symbolic = any(not isinstance(size, int) for size in wanted)
    if (not whole and not symbolic) or (mode == "pytorch_half_pixel" and 1 in targets.values()):
        return None
    if kind == "nearest" and mode == "asymmetric" and nearest == "floor":
        return F.interpolate(x, wanted, mode="nearest")
    if kind in ("linear", "bilinear", "trilinear") and mode in ("half_pixel", "align_corners", "pytorch_half_pixel"):
        names = {3: "linear", 4: "bilinear", 5: "trilinear"}
        return F.interpolate(x, wanted, mode=names[x.dim()], align_corners=mode == "align_corners")
    return None


def _axis(
    call: NodeCall, x: torch.Tensor, axis: int, size: Any, factor: Any, bounds: Any, mode: str, nearest: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """One axis, and which of its places lie outside of the region."""
    before = x.shape[axis]
    source = _source(torch.arange(size).to(torch.float64), before, size, factor, bounds, mode)
    outside = (source < 0) | (source > before - 1)
    kind = call.get("mode", "nearest")
    if kind == "nearest":
        return x.index_select(axis, _nearest(source, nearest).clamp(0, before - 1)), outside
    wide = x if x.is_floating_point() else x.to(torch.float32)
    first, weights = _weights(call, source, kind, factor)
    total: Any = 0
    places = [first + tap for tap in range(len(weights))]
    if call.get("exclude_outside"):
        weights = [torch.where((at >= 0) & (at < before), w, 0) for at, w in zip(places, weights, strict=True)]
        sums = sum(weights[1:], weights[0])
        weights = [weight / sums for weight in weights]
    shape = [-1 if at == axis else 1 for at in range(x.dim())]
    for place, weight in zip(places, weights, strict=True):
        total = total + wide.index_select(axis, place.clamp(0, before - 1)) * weight.reshape(shape).to(wide.dtype)
    return total, outside


def _source(place: torch.Tensor, before: Any, after: Any, factor: Any, bounds: Any, mode: str) -> torch.Tensor:
    """Where in the input a place of the output lies."""
    match mode:
        case "align_corners":
            return place * ((before - 1) / (after - 1)) if after != 1 else place * 0
        case "asymmetric":
            return place / factor
        case "pytorch_half_pixel":
            return (place + 0.5) / factor - 0.5 if after != 1 else place * 0
        case "tf_half_pixel_for_nn":
            return (place + 0.5) / factor
        case "half_pixel_symmetric":
            adjustment = after / (factor * before)
            return before / 2 * (1 - adjustment) + (place + 0.5) / factor - 0.5
        case "tf_crop_and_resize":
            begin, end = bounds
            if after == 1:
                return place * 0 + 0.5 * (begin + end) * (before - 1)
            return begin * (before - 1) + place * ((end - begin) * (before - 1) / (after - 1))
    return (place + 0.5) / factor - 0.5


def _nearest(source: torch.Tensor, mode: str) -> torch.Tensor:
    match mode:
        case "floor":
            return torch.floor(source).to(torch.int64)
        case "ceil":
            return torch.ceil(source).to(torch.int64)
        case "round_prefer_ceil":
            return torch.floor(source + 0.5).to(torch.int64)
    return torch.ceil(source - 0.5).to(torch.int64)


def _weights(call: NodeCall, source: torch.Tensor, kind: str, factor: Any) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The first of the neighbours of each place, and the weights of them all."""
    scale = min(float(factor), 1.0) if call.get("antialias") else 1.0
    support = (1 if kind != "cubic" else 2) / scale
    count = 2 * math.ceil(support)
    first = torch.floor(source).to(torch.int64) - count // 2 + 1
    weights = []
    for tap in range(count):
        distance = (source - (first + tap)).abs() * scale
        weights.append(
            _cubic(distance, call.get("cubic_coeff_a", -0.75)) if kind == "cubic" else (1 - distance).clamp(min=0)
        )
    if scale < 1:
        total = sum(weights[1:], weights[0])
        weights = [weight / total for weight in weights]
    return first, weights


def _cubic(d: torch.Tensor, a: float) -> torch.Tensor:
    """Keys' cubic convolution."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return torch.where(d <= 1, near, torch.where(d < 2, far, 0))
