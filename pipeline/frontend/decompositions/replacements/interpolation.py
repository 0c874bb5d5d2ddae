"""Interpolation of uint8, which torch does in fixed-point arithmetic, one dimension after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from pipeline.frontend.decompositions.replacements.resize_kernels import keys, known_sizes_of_bytes
from pipeline.frontend.decompositions.replacements.table import Decomposition, aten, replaces

#: From distances behind an element to the weights of the data around, first ones first.
Weights = Callable[[Tensor], list[Tensor]]


def _linear(t: Tensor) -> list[Tensor]:
    return [1 - t, t]


def _cubic(t: Tensor) -> list[Tensor]:
    return [keys(-0.75)(distance) for distance in (t + 1, t, 1 - t, 2 - t)]


def _of_bytes(overload: Any, kernel: Weights) -> Decomposition:
    def decomposed(x: Tensor, size: Any, align_corners: bool, *scales: Any) -> Tensor:
        if x.dtype != torch.uint8:
            otherwise = decomposition_table.get(overload)
            return NotImplemented if otherwise is None else otherwise(x, size, align_corners, *scales)
        if overload._overloadname == "vec":
            scales = tuple(scales[0] or ())
        size = size or [int(length * scale) for length, scale in zip(x.shape[2:], scales, strict=True)]
        known_sizes_of_bytes(*size, *x.shape[2:])
        for dim in (3, 2):
            if size[dim - 2] != x.size(dim):
                scale = scales[dim - 2] if scales else None
                x = _along(x, dim, _sources(x.size(dim), size[dim - 2], align_corners, scale), kernel)
        return x.clone()

    decomposed.__doc__ = f"{overload}(x: uint8) → sums of integers along the width, rounded, then along the height."
    return decomposed


for _op, _kernel in ((aten.upsample_bilinear2d, _linear), (aten.upsample_bicubic2d, _cubic)):
    for _overload in (_op.vec, _op.default):
        replaces(_overload)(_of_bytes(_overload, _kernel))


def _sources(size: int, wanted: int, align_corners: bool, scale: float | None) -> Tensor:
    """Where in `size` elements the `wanted` ones come from: [wanted], float64."""
    places = torch.arange(wanted, dtype=torch.float64)
    if align_corners:
        return places * ((size - 1) / (wanted - 1) if wanted > 1 else 0.0)
    return (places + 0.5) * (1 / scale if scale else size / wanted) - 0.5


def _along(x: Tensor, dim: int, sources: Tensor, kernel: Weights) -> Tensor:
    """The weighted sums along `dim`, rounded to bytes."""
    if kernel is _linear:
        sources = sources.clamp(min=0)
    first = sources.floor()
    weights = kernel(sources - first)
    start = 1 - len(weights) // 2
    taps = [(first.long() + start + tap).clamp(0, x.size(dim) - 1) for tap in range(len(weights))]
    for tap in range(len(taps) - 1):  # what lies outside counts as the border
        same = taps[tap] == taps[tap + 1]
        weights[tap + 1] = torch.where(same, weights[tap] + weights[tap + 1], weights[tap + 1])
        weights[tap] = torch.where(same, torch.zeros_like(weights[tap]), weights[tap])
    return weighted_bytes(x, dim, taps, weights)


def weighted_bytes(x: Tensor, dim: int, taps: list[Tensor], weights: list[Tensor]) -> Tensor:
    """The sums along `dim` of the bytes at the taps times the weights, [wanted] each, in fixed-point arithmetic."""
    bits = _bits(torch.stack(weights).amax())
    shape = [-1 if index == dim else 1 for index in range(x.dim())]
    total = torch.bitwise_left_shift(torch.ones_like(bits), bits - 1)
    for tap, weight in zip(taps, weights, strict=True):
        factor = (weight * torch.bitwise_left_shift(torch.ones_like(bits), bits) + weight.sign() * 0.5).to(torch.int32)
        total = total + x.index_select(dim, tap).to(torch.int32) * factor.view(shape)
    return torch.bitwise_right_shift(total, bits).clamp(0, 255).to(torch.uint8)


def _bits(largest: Tensor) -> Tensor:
    """How many bits behind the point the weights have: the most that keep them below 2 ** 15, at most 22."""
    doubled = torch.bitwise_left_shift(torch.ones(22, dtype=torch.int32), torch.arange(1, 23, dtype=torch.int32))
    return (0.5 + largest * doubled < 1 << 15).sum(dtype=torch.int32)
