"""Convolutions that torch-mlir lacks, as others that it has, whose weights stay weights: a norm folds into them."""

from __future__ import annotations

import torch
from torch import Tensor

aten = torch.ops.aten


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
) -> Tensor:
    """Takes apart, into the functions below, what torch-mlir gets wrong, refuses or makes slow: some grouped ones."""
    depthwise = 1 < groups == x.size(1) and weight.size(0) * (weight.size(1) if transposed else 1) == groups
    if transposed and depthwise:
        return _transposed(x, weight, bias, stride, padding, dilation, output_padding)
    if transposed and any(_cuts(weight, padding, dilation)):
        return _cut(x, weight, bias, stride, padding, dilation, output_padding, groups)
    if depthwise and x.dim() == 3:
        return _depthwise1d(x, weight, bias, stride, padding, dilation)
    if depthwise and x.dim() == 5:
        return _depthwise3d(x, weight, bias, stride, padding, dilation)
    if groups > 1 and x.dim() == 5 and not x.is_floating_point():
        whole = _each_group(x, weight, groups, (stride, padding, dilation, transposed, output_padding))
        return whole if bias is None else whole + bias.view(-1, 1, 1, 1)
    return NotImplemented


def _each_group(x: Tensor, weight: Tensor, groups: int, arguments: tuple[object, ...]) -> Tensor:
    """conv(x, w, groups=g) → cat of g convolutions: torch-mlir's grouped conv3d multiplies floats only."""
    parts = zip(x.chunk(groups, 1), weight.chunk(groups), strict=True)
    return torch.cat([aten.convolution.default(part, kernel, None, *arguments, 1) for part, kernel in parts], 1)


def _depthwise1d(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int]
) -> Tensor:
    """conv1d(x: [N, C, L], w: [C, 1, K]) → conv2d(x: [N, C, 1, L], w: [C, 1, 1, K]).

    torch-mlir has images of L rows of one element, along which there are no vectors.
    """
    arguments = ([1, *stride], [0, *padding], [1, *dilation], False, [0, 0], x.size(1))
    return aten.convolution.default(x.unsqueeze(2), weight.unsqueeze(2), bias, *arguments).squeeze(2)


def _depthwise3d(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int]
) -> Tensor:
    """conv3d(x: [N, C, D, H, W], w: [C, 1, K, ..]) → conv2d(windows of K planes: [N * D', C * K, H, W], w: [C, K, ..]).

    A grouped convolution whose planes of a window are the channels of a group. It reads each plane K times.
    """
    channels, _, planes, *kernel = weight.shape
    x = aten.constant_pad_nd.default(x, [0, 0, 0, 0, padding[0], padding[0]])
    depth = (x.size(2) - dilation[0] * (planes - 1) - 1) // stride[0] + 1
    last = (depth - 1) * stride[0] + 1
    starts = [plane * dilation[0] for plane in range(planes)]
    windows = torch.stack([x[:, :, start : start + last : stride[0]] for start in starts], 3)
    windows = windows.transpose(1, 2).reshape(-1, channels * planes, *x.shape[3:])
    arguments = (bias, stride[1:], padding[1:], dilation[1:], False, [0, 0], channels)
    result = aten.convolution.default(windows, weight.reshape(channels, planes, *kernel), *arguments)
    return result.reshape(x.size(0), depth, *result.shape[1:]).transpose(1, 2)


def _transposed(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    output_padding: list[int],
) -> Tensor:
    """conv_transpose(x, w, groups=C) → conv(x with zeros between and around, w flipped, groups=C)."""
    rank = x.dim() - 2
    margins: list[int] = []
    for axis in reversed(range(rank)):
        x = _spread(x, 2 + axis, stride[axis])
        reach = dilation[axis] * (weight.size(2 + axis) - 1) - padding[axis]
        margins += [reach, reach + output_padding[axis]]
    flipped = weight.flip(list(range(2, 2 + rank)))
    arguments = (bias, [1] * rank, [0] * rank, dilation, False, [0] * rank, x.size(1))
    return aten.convolution.default(aten.constant_pad_nd.default(x, margins), flipped, *arguments)


def _cuts(weight: Tensor, padding: list[int], dilation: list[int]) -> list[int]:
    """How many elements a transposed convolution leaves out at each end: padding that no tap reaches."""
    reach = [step * (size - 1) for size, step in zip(weight.shape[2:], dilation, strict=True)]
    return [max(0, width - most) for width, most in zip(padding, reach, strict=True)]


def _cut(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    output_padding: list[int],
    groups: int,
) -> Tensor:
    """conv_transpose(x, w, padding=p) → the middle of conv_transpose(x, w, padding=less).

    torch-mlir cuts the data instead, which it makes too small if there is output_padding, and reads what is behind it.
    """
    cuts = _cuts(weight, padding, dilation)
    less = [width - cut for width, cut in zip(padding, cuts, strict=True)]
    result = aten.convolution.default(x, weight, bias, stride, less, dilation, True, output_padding, groups)
    for dim, cut in enumerate(cuts, 2):
        result = result.narrow(dim, cut, result.size(dim) - 2 * cut)
    return result


def _spread(x: Tensor, dim: int, stride: int) -> Tensor:
    """[a, b] → [a, 0, 0, b] along a dim, for a stride of 3."""
    if stride == 1:
        return x
    size = x.size(dim)
    after = [0, 0] * (x.dim() - 1 - dim)
    spread = aten.constant_pad_nd.default(x.unsqueeze(dim + 1), [*after, 0, stride - 1])
    return spread.flatten(dim, dim + 1).narrow(dim, 0, (size - 1) * stride + 1)
