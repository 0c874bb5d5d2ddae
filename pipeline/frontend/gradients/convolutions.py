"""Gradients of convolutions: by the input a convolution, by the weight a product for each tap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.frontend.gradients.tap_products_op import tap_products

aten = torch.ops.aten


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
    rank, taps = window.rank, weight.shape[2:]
    margins = [width for padding in reversed(window.padding) for width in (padding, padding)]
    padded = aten.constant_pad_nd.default(x, margins) if any(margins) else x
    rows, columns = gradient.size(1) // groups, x.size(1) // groups
    depthwise = groups > 1 and rows == columns == 1
    left, right = _channels_last(padded, groups, depthwise), _channels_last(gradient, groups, depthwise)
    products = tap_products(left, right, list(taps), window.stride, window.dilation, depthwise)
    return (products if depthwise else products.movedim(-1, -1 - rank)).reshape(weight.shape)


def _channels_last(x: Tensor, groups: int, depthwise: bool) -> Tensor:
    """[N, G * C, ..] → [N, .., G, C]; without G if that is 1, without C if each channel is a group."""
    last = x.movedim(1, -1)
    return last if groups == 1 or depthwise else last.unflatten(-1, (groups, -1))
