"""Pools, local and global, and their inverse."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op
from pipeline.frontend.onnx.ops.windows import Windows, windows_of

_MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE_POOLS: dict[int, Any] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def _windows(call: NodeCall, x: torch.Tensor) -> Windows:
    return windows_of(call, list(call.get("kernel_shape")), list(x.shape[2:]))


def _counts(call: NodeCall, windows: Windows, spatial: list[Any]) -> list[Any]:
    """The numbers of windows; rounded up with `ceil_mode`, but none begins in the pad after."""
    counts = []
    for at, size in enumerate(spatial):
        extent = (windows.sizes[at] - 1) * windows.dilations[at] + 1
        room = size + windows.before[at] + windows.after[at] - extent
        stride = windows.strides[at]
        count = (-(-room // stride) if call.get("ceil_mode") else room // stride) + 1
        if call.get("ceil_mode") and (count - 1) * stride >= size + windows.before[at]:
            count -= 1
        counts.append(count)
    return counts


def _surrounded(call: NodeCall, x: torch.Tensor, windows: Windows, value: Any) -> torch.Tensor:
    """x with the pads, so that every window fits, and no more fit."""
    around = []
    for at, count in enumerate(_counts(call, windows, list(x.shape[2:]))):
        extent = (windows.sizes[at] - 1) * windows.dilations[at] + 1
        needed = (count - 1) * windows.strides[at] + extent
        around.append((windows.before[at], needed - windows.before[at] - x.shape[2 + at]))
    return F.pad(x, [number for pair in reversed(around) for number in pair], value=value)


@op("MaxPool")
def max_pool(call: NodeCall, x: torch.Tensor) -> Any:
    """The greatest element of each window, and its place."""
    windows = _windows(call, x)
    dtype = x.dtype
    lowest = -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min
    wants_places = len(call.node.output) > 1 and call.node.output[1]
    half = all(2 * pad <= size for pad, size in zip(windows.before, windows.sizes, strict=True))
    function = _MAX_POOLS[len(windows.sizes)]
    y = x if dtype.is_floating_point else x.to(torch.float32)
    if windows.is_symmetric and half and not call.get("ceil_mode") and not wants_places:
        pooled = function(y, windows.sizes, windows.strides, windows.before, windows.dilations)
        return pooled.to(dtype)
    surrounded = _surrounded(call, y, windows, float(lowest))
    if not wants_places:
        return function(surrounded, windows.sizes, windows.strides, 0, windows.dilations).to(dtype)
    pooled, places = function(surrounded, windows.sizes, windows.strides, 0, windows.dilations, return_indices=True)
    return pooled.to(dtype), _places(call, places, windows, x, list(surrounded.shape[2:]))


def _places(call: NodeCall, places: torch.Tensor, windows: Windows, x: torch.Tensor, around: list[Any]) -> torch.Tensor:
    """Places in the padded image of each channel → in the whole input, by rows or by columns."""
    spatial = list(x.shape[2:])
    coordinates = []
    for size, before in zip(reversed(around), reversed(windows.before), strict=True):
        coordinates.append(places % size - before)
        places = places // size
    coordinates.reverse()
    order = list(range(len(spatial)))
    order = order[::-1] if call.get("storage_order") else order
    total = torch.zeros_like(places)
    for axis in order:
        total = total * spatial[axis] + coordinates[axis]
    images = torch.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1], *[1] * len(spatial))
    return total + images * math.prod(spatial)


@op("AveragePool")
def average_pool(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """The mean of each window, with or without its pad."""
    windows = _windows(call, x)
    counted = bool(call.get("count_include_pad"))
    half = all(2 * pad <= size for pad, size in zip(windows.before, windows.sizes, strict=True))
    if windows.is_symmetric and half and not call.get("ceil_mode") and set(windows.dilations) == {1}:
        function = _AVERAGE_POOLS[len(windows.sizes)]
        return function(x, windows.sizes, windows.strides, windows.before, False, counted)
    inside = torch.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    count = _sums(call, inside, windows, 1.0 if counted else 0.0)
    return _sums(call, x, windows) / count


def _sums(call: NodeCall, x: torch.Tensor, windows: Windows, pad: float = 0.0) -> torch.Tensor:
    """The sum of each window, by a convolution with ones; what a last window lacks beyond the pads is 0."""
    if pad:
        within = F.pad(x, windows.around(), value=pad)
        last = _surrounded(call, x, windows, 0.0)
        more = [a - b for a, b in zip(last.shape[2:], within.shape[2:], strict=True)]
        surrounded = F.pad(within, [number for size in reversed(more) for number in (0, size)])
    else:
        surrounded = _surrounded(call, x, windows, 0.0)
    rank = len(windows.sizes)
    ones = torch.ones((1, 1, *windows.sizes), dtype=x.dtype)
    flat = surrounded.reshape(-1, 1, *surrounded.shape[2:])
    nothing = [0] * rank
    sums = torch.ops.aten.convolution(flat, ones, None, windows.strides, nothing, windows.dilations, False, nothing, 1)
    return sums.reshape(*x.shape[:2], *sums.shape[2:])


@op("LpPool")
def lp_pool(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """The p-norm of each window."""
    p = call.get("p", 2)
    return _sums(call, x.abs() ** p, _windows(call, x)) ** (1 / p)


@op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Of all elements of each channel."""
    dims = list(range(2, x.dim()))
    if call.node.op_type == "GlobalAveragePool":
        return x.mean(dims, keepdim=True)
    if call.node.op_type == "GlobalMaxPool":
        return x.amax(dims, keepdim=True)
    p = call.get("p", 2)
    return (x.abs() ** p).sum(dims, keepdim=True) ** (1 / p)


@op("MaxUnpool", as_given=(2,))
def max_unpool(call: NodeCall, x: torch.Tensor, places: torch.Tensor, shape: Any = None) -> torch.Tensor:
    """Zeros with the elements at their places."""
    windows = _windows(call, x)
    natural = [
        (size - 1) * stride - before - after + window
        for size, stride, before, after, window in zip(
            x.shape[2:], windows.strides, windows.before, windows.after, windows.sizes, strict=True
        )
    ]
    sizes = [*x.shape[:2], *natural]
    result = torch.zeros(math.prod(sizes), dtype=x.dtype).scatter(0, places.reshape(-1), x.reshape(-1)).reshape(sizes)
    wanted = call.numbers(shape)
    if wanted is None:
        return result
    around = [number for at in reversed(range(2, len(sizes))) for number in (0, wanted[at] - sizes[at])]
    return F.pad(result, around)
