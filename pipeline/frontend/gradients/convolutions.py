"""Gradients of convolutions: by the input a convolution, by the weight a product for each tap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import torch
from torch import Tensor

from pipeline.frontend.gradients.tap_products_op import tap_products

aten = torch.ops.aten


#: The share of products with data up to which those with padding are left out, which takes a kernel for each tap; and
#: how many have to go.
_MOST_KEPT, _MOST_KEPT_UNDILATED, _LEAST_PRODUCTS = 0.75, 0.5, 1_000_000


@dataclass(frozen=True)
class _Read:
    """What a tap reads along a dim.

    Attributes:
        first: the first place at which it reads data.
        places: at how many it does.
        start: the element that it reads there.
    """

    first: int
    places: int
    start: int


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
    taps = weight.shape[2:]
    rows, columns = gradient.size(1) // groups, x.size(1) // groups
    depthwise = groups > 1 and rows == columns == 1
    right = _channels_last(gradient, groups, depthwise)
    reads = _reads(x.shape[2:], gradient.shape[2:], taps, window)
    if reads is not None and _pays(reads, gradient, x.size(1) // groups, window):
        products = _tap_by_tap(_channels_last(x, groups, depthwise), right, reads, window, depthwise)
    else:
        margins = [width for padding in reversed(window.padding) for width in (padding, padding)]
        left = aten.constant_pad_nd.default(x, margins) if any(margins) else x
        left = _channels_last(left, groups, depthwise)
        products = tap_products(left, right, list(taps), window.stride, window.dilation, depthwise)
    return (products if depthwise else products.movedim(-1, -1 - window.rank)).reshape(weight.shape)


def _reads(
    sizes: Sequence[int], places: Sequence[int], taps: Sequence[int], window: _Window
) -> list[list[_Read]] | None:
    """What each tap of each dim in space reads; None where sizes are known at run time alone."""
    if not all(isinstance(size, int) for size in (*sizes, *places)):
        return None
    dims = zip(sizes, places, taps, window.stride, window.padding, window.dilation, strict=True)
    return [
        [_read(size, count, stride, padding - tap * dilation) for tap in range(kernel)]
        for size, count, kernel, stride, padding, dilation in dims
    ]


def _read(size: int, places: int, stride: int, zeros: int) -> _Read:
    """Of elements that lie behind `zeros` others: those that are read in steps from there, at how many places."""
    first = max(0, -(-zeros // stride))
    behind = min(places, (size - 1 + zeros) // stride + 1)
    return _Read(first, behind - first, first * stride - zeros) if behind > first else _Read(0, 0, 0)


def _pays(reads: list[list[_Read]], gradient: Tensor, columns: int, window: _Window) -> bool:
    """Whether enough is left out to compute with each tap on its own.

    Without dilation that takes images of one or two elements. A batch of unknown size counts as one image.
    """
    kept = prod(sum(read.places for read in line) for line in reads)
    whole = prod(len(line) * count for line, count in zip(reads, gradient.shape[2:], strict=True))
    most = _MOST_KEPT if max(window.dilation) > 1 else _MOST_KEPT_UNDILATED
    batch = gradient.size(0) if isinstance(gradient.size(0), int) else 1
    return kept <= most * whole and (whole - kept) * batch * gradient.size(1) * columns >= _LEAST_PRODUCTS


def _tap_by_tap(x: Tensor, gradient: Tensor, reads: list[list[_Read]], window: _Window, depthwise: bool) -> Tensor:
    """`tap_products` of data without padding: each tap is multiplied with what it reads of it."""
    parts = []
    for tap in product(*reads):
        mine, theirs = x, gradient
        for dim, (read, stride) in enumerate(zip(tap, window.stride, strict=True), 1):
            mine = mine.narrow(dim, read.start, (read.places - 1) * stride + 1 if read.places else 0)
            theirs = theirs.narrow(dim, read.first, read.places)
        parts.append((mine, theirs))
    ones = [1] * window.rank
    products = [tap_products(mine, theirs, ones, window.stride, ones, depthwise) for mine, theirs in parts]
    dim = products[0].dim() - window.rank - (not depthwise)
    return torch.cat(products, dim).flatten(dim, dim + window.rank - 1).unflatten(dim, [len(line) for line in reads])


def _channels_last(x: Tensor, groups: int, depthwise: bool) -> Tensor:
    """[N, G * C, ..] → [N, .., G, C]; without G if that is 1, without C if each channel is a group."""
    last = x.movedim(1, -1)
    return last if groups == 1 or depthwise else last.unflatten(-1, (groups, -1))
