"""Gradients of pools and of resizing: products with the transposed matrix of each dim, as the ops are separable.

avg_pool2d(x: [.., h, w]) = A x B' with A: [rows of the result, h] and B: [columns, w], so that its gradient is A' g B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.adaptive_pooling import windows
from pipeline.frontend.decompositions.replacements.resize_kernels import keys, linear
from pipeline.frontend.decompositions.replacements.table import aten, replaces


def transposed_products(gradient: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """gradient: [.., o1, o2], matrices [o1, i1] and [o2, i2] → [.., i1, i2], summed in float32 at least."""
    wide = torch.float64 if gradient.dtype == torch.float64 else torch.float32
    result = gradient.to(wide)
    for dim, matrix in enumerate(matrices, -len(matrices)):
        result = (result.movedim(dim, -1) @ matrix.to(wide)).movedim(-1, dim)
    return result.to(gradient.dtype)


def _each(given: Sequence[int], count: int, otherwise: Sequence[int] = ()) -> list[int]:
    """What holds for each of `count` dims, of a list of one, of as many or of none."""
    values = list(given) or list(otherwise)
    return values * count if len(values) == 1 else values


def _average_matrix(
    size: Any, count: Any, kernel: int, stride: int, padding: int, include_pad: bool, divides: bool
) -> Tensor:
    """[count, size]: what each element of an average pool's result has of each element."""
    place, first = torch.arange(size), (torch.arange(count) * stride - padding).unsqueeze(1)
    last = (first + kernel).clamp(max=size + padding)
    inside = (place >= first) & (place < last)
    if not divides:
        return inside.to(torch.float64)
    number = last - first if include_pad else last.clamp(max=size) - first.clamp(min=0)
    return inside / number.to(torch.float64)


@replaces(aten.avg_pool2d_backward.default)
def avg_pool2d_backward(
    gradient: Tensor,
    x: Tensor,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """avg_pool2d_backward(g, x: [.., h, w]) → A' g B, see the module."""
    return _averages(2, gradient, x, kernel_size, stride, padding, count_include_pad, divisor_override)


@replaces(aten.avg_pool3d_backward.default)
def avg_pool3d_backward(
    gradient: Tensor,
    x: Tensor,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """avg_pool3d_backward(g, x: [.., d, h, w]) → likewise, along three dims."""
    return _averages(3, gradient, x, kernel_size, stride, padding, count_include_pad, divisor_override)


def _averages(
    count: int,
    gradient: Tensor,
    x: Tensor,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    kernels = _each(kernel_size, count)
    strides, paddings = _each(stride, count, kernels), _each(padding, count)
    matrices = [
        _average_matrix(size, wanted, kernel, step, pad, count_include_pad, divisor_override is None)
        for size, wanted, kernel, step, pad in zip(
            x.shape[-count:], gradient.shape[-count:], kernels, strides, paddings, strict=True
        )
    ]
    return transposed_products(gradient / (divisor_override or 1), matrices)


@replaces(aten._adaptive_avg_pool2d_backward.default)
def adaptive_avg_pool2d_backward(gradient: Tensor, x: Tensor) -> Tensor:
    """_adaptive_avg_pool2d_backward(g, x: [.., h, w]) → A' g B, see the module."""
    return _adaptive_averages(2, gradient, x)


@replaces(aten._adaptive_avg_pool3d_backward.default)
def adaptive_avg_pool3d_backward(gradient: Tensor, x: Tensor) -> Tensor:
    """_adaptive_avg_pool3d_backward(g, x: [.., d, h, w]) → likewise, along three dims."""
    return _adaptive_averages(3, gradient, x)


def _adaptive_averages(count: int, gradient: Tensor, x: Tensor) -> Tensor:
    inside = [windows(size, wanted) for size, wanted in zip(x.shape[-count:], gradient.shape[-count:], strict=True)]
    return transposed_products(gradient, [matrix / matrix.sum(1, keepdim=True).to(torch.float64) for matrix in inside])


def _nearest_matrix(size: Any, wanted: Any, scale: float | None, offset: float) -> Tensor:
    """[wanted, size]: 1 where an element of the result comes from."""
    ratio = 1 / scale if scale else size / wanted
    source = ((torch.arange(wanted, dtype=torch.float32) + offset) * ratio).to(torch.int64).clamp(max=size - 1)
    return (source.unsqueeze(1) == torch.arange(size)).to(torch.float64)


def _of_nearest(offset: float, count: int) -> Any:
    def backward(gradient: Tensor, output_size: Any, input_size: Any, *scales: float | None) -> Tensor:
        """upsample_nearest2d_backward(g) → A' g B, see the module."""
        given = scales or (None,) * count
        sizes = zip(input_size[2:], output_size, given, strict=True)
        return transposed_products(gradient, [_nearest_matrix(*dim_sizes, offset) for dim_sizes in sizes])

    return backward


for _count in (1, 2, 3):
    replaces(getattr(aten, f"upsample_nearest{_count}d_backward").default)(_of_nearest(0.0, _count))
    replaces(getattr(aten, f"_upsample_nearest_exact{_count}d_backward").default)(_of_nearest(0.5, _count))


def _sources(size: Any, wanted: Any, align_corners: bool, scale: float | None, dtype: torch.dtype) -> Tensor:
    """[wanted]: where in a dim of `size` elements those of the result come from."""
    places = torch.arange(wanted, dtype=dtype)
    if align_corners:
        return places * ((size - 1) / torch.sym_max(wanted - 1, 1))
    return (places + 0.5) * (1 / scale if scale else size / wanted) - 0.5


_cubic = keys(-0.75)


def _kernel_matrix(size: Any, sources: Tensor, is_cubic: bool) -> Tensor:
    """[wanted, size]: the weights; what lies outside counts as the border."""
    if not is_cubic:
        sources = sources.clamp(min=0)
    first = sources.floor()
    matrix = torch.zeros((), dtype=sources.dtype)
    for tap in range(-1, 3) if is_cubic else range(2):
        place = first + tap
        weight = (_cubic if is_cubic else linear)((sources - place).abs())
        taken = place.clamp(min=0).to(torch.int64).clamp(max=size - 1)
        matrix = matrix + torch.where(taken.unsqueeze(1) == torch.arange(size), weight.unsqueeze(1), 0.0)
    return matrix


def _of_kernel(is_cubic: bool, count: int) -> Any:
    def backward(
        gradient: Tensor, output_size: Any, input_size: Any, align_corners: bool, *scales: float | None
    ) -> Tensor:
        """upsample_bilinear2d_backward(g) → A' g B, see the module."""
        dtype = torch.float64 if gradient.dtype == torch.float64 else torch.float32
        matrices = [
            _kernel_matrix(size, _sources(size, wanted, align_corners, scale, dtype), is_cubic)
            for size, wanted, scale in zip(input_size[2:], output_size, scales or (None,) * count, strict=True)
        ]
        return transposed_products(gradient, matrices)

    return backward


for _op, _count in (
    (aten.upsample_linear1d_backward, 1),
    (aten.upsample_bilinear2d_backward, 2),
    (aten.upsample_trilinear3d_backward, 3),
):
    replaces(_op.default)(_of_kernel(False, _count))
replaces(aten.upsample_bicubic2d_backward.default)(_of_kernel(True, 2))
