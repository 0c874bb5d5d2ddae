"""Fake quantization that observes its data: the ranges that training sees, and scales and zero points by them."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.errors import PipelineError
from pipeline.frontend.decompositions.replacements.fake_quantization import per_channel, per_tensor_by_tensors
from pipeline.frontend.decompositions.replacements.table import aten, replaces

#: The least scale, and that of data that are all zero, as torch has them.
_LEAST_SCALE, _SCALE_OF_ZEROS = 6.1e-5, 0.1


@replaces(aten._fused_moving_avg_obs_fq_helper_functional.default)
def observed(
    x: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """fake_quantize(x, s, z, l, h), where it was clamped nowhere, then new running limits, scales and zero points.

    Limits are moving averages, of all of x or for each of its rows, while the observer is on; scales and zero points
    follow from them while fake quantization is. Raises `PipelineError` for channels along another dim, as eager does.
    """
    if per_row_fake_quant and ch_axis != 0:
        raise PipelineError(
            f"fused_moving_avg_obs_fake_quant: ch_axis is {ch_axis}; torch computes with channels at 0 alone"
        )
    dims = list(range(1 if per_row_fake_quant else 0, x.dim()))
    observes, quantizes = (flag.reshape(()) != 0 for flag in (observer_on, fake_quant_on))
    low, high = (
        torch.where(observes, _averaged(limit, seen.reshape(limit.shape), averaging_const), limit)
        for limit, seen in ((running_min, x.amin(dims)), (running_max, x.amax(dims)))
    )
    found = _scale_and_zero_point(
        low.reshape(scale.shape), high.reshape(scale.shape), quant_min, quant_max, symmetric_quant
    )
    scale, zero_point = (torch.where(quantizes, new, old) for new, old in zip(found, (scale, zero_point), strict=True))
    if per_row_fake_quant:
        quantized, inside = per_channel(x, scale, zero_point, ch_axis, quant_min, quant_max)
        quantized, inside = torch.where(quantizes, quantized, x), inside | ~quantizes
    else:
        quantized, inside = per_tensor_by_tensors(x, scale, zero_point, fake_quant_on, quant_min, quant_max)
    return quantized, inside, low, high, scale, zero_point


def _averaged(limit: Tensor, seen: Tensor, weight: float) -> Tensor:
    """A moving average, which starts with what is seen first."""
    return torch.where(limit.isinf(), seen, limit + weight * (seen - limit))


def _scale_and_zero_point(low: Tensor, high: Tensor, first: int, last: int, symmetric: bool) -> tuple[Tensor, Tensor]:
    """The scale and the zero point by which integers in [first, last] stand for numbers in [low, high], and for 0."""
    both = (low < 0) & (high > 0)
    if symmetric:
        below, above = -((last - first) // 2 + 1), (last - first) // 2
        widest = torch.maximum((low / below).abs(), (high / above).abs()).double()
        low, high = torch.where(both, (widest * below).float(), low), torch.where(both, (widest * above).float(), high)
    low, high = low.clamp(max=0), high.clamp(min=0)
    scale = ((high.double() - low.double()) / (last - first)).float()
    scale = torch.where((scale == 0) | (1 / scale).isinf(), _SCALE_OF_ZEROS, scale)
    low, high, scale = _with_least_scale(low, high, scale, last - first)
    by_low, by_high = first - low.double() / scale.double(), last - high.double() / scale.double()
    errors = abs(first) - (low.double() / scale.double()).abs(), abs(last) - (high.double() / scale.double()).abs()
    zero_point = torch.where(errors[0] < errors[1], by_low, by_high)
    if symmetric:
        zero_point = torch.where((low < 0) & (high > 0), (first + last) / 2, zero_point)
    return scale, zero_point.round().clamp(first, last).to(torch.int32)


def _with_least_scale(low: Tensor, high: Tensor, scale: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """The limits and their scale; wider ones where that would be too small."""
    least = torch.full_like(scale, _LEAST_SCALE)
    small, wide, factor = scale < least, least * steps, least / scale
    lower = torch.where(high == 0, -wide, low * factor)
    higher = torch.where(low == 0, wide, torch.where(high == 0, high, high * factor))
    lower = torch.where(low == 0, low, lower)
    return torch.where(small, lower, low), torch.where(small, higher, high), torch.where(small, least, scale)
