"""Convolutions."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op
from pipeline.frontend.onnx.ops.windows import windows_of


@op("Conv")
def conv(call: NodeCall, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """A convolution of any number of spatial dims."""
    windows = windows_of(call, list(weight.shape[2:]), list(x.shape[2:]))
    if windows.is_symmetric:
        padding = windows.before
    else:
        x, padding = F.pad(x, windows.around()), [0] * len(windows.sizes)
    groups = call.get("group", 1)
    nothing = [0] * len(windows.sizes)
    return torch.ops.aten.convolution(
        x, weight, bias, windows.strides, padding, windows.dilations, False, nothing, groups
    )


@op("ConvTranspose")
def conv_transpose(
    call: NodeCall, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """A transposed convolution; of all of its elements those that the pads leave."""
    sizes = list(weight.shape[2:])
    rank = len(sizes)
    strides = call.get("strides") or [1] * rank
    dilations = call.get("dilations") or [1] * rank
    extra = call.get("output_padding") or [0] * rank
    full = [
        (size - 1) * stride + (window - 1) * dilation + 1 + more
        for size, stride, window, dilation, more in zip(x.shape[2:], strides, sizes, dilations, extra, strict=True)
    ]
    before, after, extra = _crop(call, list(x.shape[2:]), strides, full, extra)
    groups, nothing = call.get("group", 1), [0] * rank
    if before == after and all(isinstance(pad, int) for pad in before):
        return torch.ops.aten.convolution(x, weight, bias, strides, before, dilations, True, extra, groups)
    y = torch.ops.aten.convolution(x, weight, bias, strides, nothing, dilations, True, nothing, groups)
    flat = [number for at in reversed(range(rank)) for number in (-before[at], extra[at] - after[at])]
    if bias is None or not any(number > 0 for number in flat):
        return F.pad(y, flat)
    plain = torch.ops.aten.convolution(x, weight, None, strides, nothing, dilations, True, nothing, groups)
    return F.pad(plain, flat) + bias.reshape(-1, *[1] * rank)


def _crop(call: NodeCall, spatial: list[Any], strides: list[int], full: list[Any], extra: list[int]) -> Any:
    """What is cut off before and after, and what is padded."""
    rank = len(spatial)
    wanted, rule = call.get("output_shape"), call.get("auto_pad", "NOTSET")
    if wanted is None and rule in ("NOTSET", "VALID"):
        pads = call.get("pads") or [0] * (2 * rank)
        pads = [0] * (2 * rank) if rule == "VALID" else pads
        return list(pads[:rank]), list(pads[rank:]), extra
    wanted = wanted[-rank:] if wanted is not None else [s * n for s, n in zip(strides, spatial, strict=True)]
    total = [own - size for own, size in zip(full, wanted, strict=True)]
    half = [max(number, 0) // 2 for number in total]
    rest = [number - less for number, less in zip(total, half, strict=True)]
    before, after = (half, rest) if rule == "SAME_UPPER" else (rest, half)
    before = [max(number, 0) for number in before]
    after = [number - first for number, first in zip(total, before, strict=True)]
    return before, after, extra


@op("DeformConv")
def deform_conv(
    call: NodeCall,
    x: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    bias: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """A convolution in two dims whose windows' elements are moved, bilinear between pixels, and weighted."""
    windows = windows_of(call, list(call.get("kernel_shape") or weight.shape[2:]), list(x.shape[2:]))
    (kh, kw), groups, offsets = windows.sizes, call.get("group", 1), call.get("offset_group", 1)
    n, c, height, width = x.shape
    _, _, oh, ow = offset.shape
    moved = offset.reshape(n, offsets, kh * kw, 2, oh, ow)
    taps = torch.arange(kh * kw)
    rows = _grid(taps // kw * windows.dilations[0], oh, windows.strides[0], windows.before[0], True)
    columns = _grid(taps % kw * windows.dilations[1], ow, windows.strides[1], windows.before[1], False)
    y, z = rows + moved[:, :, :, 0], columns + moved[:, :, :, 1]
    source = x.reshape(n, offsets, c // offsets, height * width)
    sampled = _bilinear(source, y, z, height, width)
    if mask is not None:
        sampled = sampled * mask.reshape(n, offsets, 1, kh * kw, oh, ow)
    patches = sampled.reshape(n, groups, (c // groups) * kh * kw, oh * ow)
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1)
    result = torch.matmul(kernels, patches).reshape(n, weight.shape[0], oh, ow)
    return result if bias is None else result + bias.reshape(-1, 1, 1)


def _grid(taps: torch.Tensor, count: Any, stride: int, pad: Any, is_row: bool) -> torch.Tensor:
    """The coordinate of each tap in each window: [taps, oh, ow], one of the last two being 1."""
    starts = torch.arange(count) * stride - pad
    return taps.reshape(-1, 1, 1) + (starts.reshape(1, -1, 1) if is_row else starts.reshape(1, 1, -1))


def _bilinear(source: torch.Tensor, y: torch.Tensor, x: torch.Tensor, height: Any, width: Any) -> torch.Tensor:
    """source [n, g, c, h*w] at (y, x) [n, g, taps, oh, ow] → [n, g, c, taps, oh, ow]; 0 outside."""
    total: Any = 0
    top, left = torch.floor(y), torch.floor(x)
    for down in (0, 1):
        for right in (0, 1):
            row, column = top + down, left + right
            weight = (1 - (y - row).abs()) * (1 - (x - column).abs())
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = row.clamp(0, height - 1).to(torch.int64) * width + column.clamp(0, width - 1).to(torch.int64)
            flat = place.flatten(2).unsqueeze(2).expand(-1, -1, source.shape[2], -1)
            values = source.gather(3, flat).reshape(*source.shape[:3], *y.shape[2:])
            total = total + values * torch.where(inside, weight, 0).unsqueeze(2)
    return total


@op("Col2Im", as_given=(1, 2))
def col2im(call: NodeCall, x: torch.Tensor, image: Any, block: Any) -> torch.Tensor:
    """Columns of windows added up to an image: a transposed convolution with unit weights."""
    sizes, shape = call.numbers(block) or [], call.numbers(image) or []
    windows = windows_of(call, sizes, shape)
    taps = 1
    for size in sizes:
        taps *= size
    counts = [
        (size + a + b - (window - 1) * d - 1) // s + 1
        for size, window, s, d, a, b in zip(
            shape, sizes, windows.strides, windows.dilations, windows.before, windows.after, strict=True
        )
    ]
    n, channels = x.shape[0], x.shape[1] // taps
    columns = x.reshape(n * channels, taps, *counts)
    units = torch.eye(taps, dtype=x.dtype).reshape(taps, 1, *sizes)
    nothing = [0] * len(sizes)
    full = torch.ops.aten.convolution(
        columns, units, None, windows.strides, nothing, windows.dilations, True, nothing, 1
    )
    around = [
        number
        for at in reversed(range(len(sizes)))
        for number in (-windows.before[at], shape[at] + windows.before[at] - full.shape[2 + at])
    ]
    return F.pad(full, around).reshape(n, channels, *shape)
