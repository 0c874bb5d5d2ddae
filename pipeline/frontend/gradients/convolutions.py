"""Gradients of convolutions: by the input a convolution, by the weight products over all rows and places."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

aten = torch.ops.aten

#: A product for each tap of the kernel pays from so many channels on; with fewer, all taps are the columns of one.
_CHANNELS_OF_A_TAP = 16


@dataclass(frozen=True)
class _Window:
    """Where a convolution reads, for each of its dims in space.

    Attributes:
        stride, padding, dilation: as torch has them, one number for each dim.
    """

    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]

    @property
    def rank(self) -> int:
        """How many dims there are."""
        return len(self.stride)


def convolution_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: list[int] | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """convolution_backward(g, x: [N, C, ..], w, ..) → its gradients by x, by w and by the bias, None if not asked for.

    Sums of 16 bits are added up in float32.
    """
    rank = x.dim() - 2
    window = _Window(*(list(sizes) * (rank if len(sizes) == 1 else 1) for sizes in (stride, padding, dilation)))
    by_input = by_weight = by_bias = None
    if output_mask[0]:
        by_input = _by_input(gradient, x, weight, window, transposed, groups)
    if output_mask[1]:
        inner, outer = (gradient, x) if transposed else (x, gradient)
        by_weight = _by_weight(inner, outer, weight, window, groups).to(weight.dtype)
    if output_mask[2]:
        by_bias = gradient.sum([0, *range(2, rank + 2)])
    return by_input, by_weight, by_bias


def _by_input(gradient: Tensor, x: Tensor, weight: Tensor, window: _Window, transposed: bool, groups: int) -> Tensor:
    """conv(x, w) → conv_transpose(g, w), and the other way round."""
    sizes = (window.stride, window.padding, window.dilation)
    if transposed:
        result = aten.convolution.default(gradient, weight, None, *sizes, False, [0] * window.rank, groups)
        for dim in range(2, x.dim()):
            result = result.narrow(dim, 0, x.size(dim))
        return result
    rest = [
        x.size(dim) - ((gradient.size(dim) - 1) * stride - 2 * padding + dilation * (weight.size(dim) - 1) + 1)
        for dim, stride, padding, dilation in zip(range(2, x.dim()), *sizes, strict=True)
    ]
    return aten.convolution.default(gradient, weight, None, *sizes, True, rest, groups)


def _by_weight(x: Tensor, gradient: Tensor, weight: Tensor, window: _Window, groups: int) -> Tensor:
    """sum over rows and places of gradient[n, o, p] * x[n, i, p * stride + tap * dilation - padding]: [O, I, taps]."""
    rank, wide = window.rank, torch.float32 if x.dtype.itemsize == 2 else x.dtype
    margins = [width for padding in reversed(window.padding) for width in (padding, padding)]
    padded = aten.constant_pad_nd.default(x, margins) if any(margins) else x
    taps = [_tap(padded, gradient, window, place) for place in itertools.product(*map(range, weight.shape[2:]))]
    rows, columns = gradient.size(1) // groups, x.size(1) // groups
    if groups > 1 and rows == columns == 1:
        sums = [(tap.to(wide) * gradient.to(wide)).sum([0, *range(2, rank + 2)]) for tap in taps]
        return torch.stack(sums, -1).view(weight.shape)
    left = _places_last(gradient, groups)
    if columns < _CHANNELS_OF_A_TAP and len(taps) > 1:
        right = torch.stack([_places_first(tap, groups) for tap in taps], -1).flatten(-2)
        return (left @ right).to(wide).view(weight.shape)
    products = [left @ _places_first(tap, groups) for tap in taps]
    return torch.stack(products, -1).view(weight.shape)


def _tap(padded: Tensor, gradient: Tensor, window: _Window, place: Sequence[int]) -> Tensor:
    """The elements that one tap of the kernel reads: [N, C, places of the gradient]."""
    for dim, (tap, stride, dilation) in enumerate(zip(place, window.stride, window.dilation, strict=True), 2):
        first = tap * dilation
        padded = aten.slice.Tensor(padded, dim, first, first + (gradient.size(dim) - 1) * stride + 1, stride)
    return padded


def _places_last(gradient: Tensor, groups: int) -> Tensor:
    """[N, G * O, places] → [G, O, N * places], without G if that is 1."""
    by_channel = gradient.transpose(0, 1)
    if groups == 1:
        return by_channel.reshape(by_channel.size(0), -1)
    return by_channel.reshape(groups, by_channel.size(0) // groups, -1)


def _places_first(tap: Tensor, groups: int) -> Tensor:
    """[N, G * I, places] → [G, N * places, I], without G if that is 1."""
    channels_last = tap.movedim(1, -1)
    if groups == 1:
        return channels_last.reshape(-1, tap.size(1))
    return channels_last.reshape(-1, groups, tap.size(1) // groups).transpose(0, 1)
