"""Numbers as they are after quantization, in floating point: what training that is aware of quantization computes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.fake_quantize_per_tensor_affine_cachemask.default)
def per_tensor(x: Tensor, scale: float, zero_point: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """fake_quantize(x, s, z, l, h) → (clamp(round(x / s) + z, l, h) - z) * s, and where nothing was clamped.

    The scale, its inverse and the product are float32, whatever the dtype of x, as eager's kernel has them.
    """
    single = np.float32(scale)
    steps, inside = _steps(x, float(np.float32(1) / single), zero_point, low, high)
    return (steps.float() * float(single)).to(x.dtype), inside


@replaces(aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default)
def per_tensor_by_tensors(
    x: Tensor, scale: Tensor, zero_point: Tensor, enabled: Tensor, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """The same with a scale and a zero point that are tensors of one element; x itself where it is not enabled."""
    scale, zero_point, on = scale.reshape(()), zero_point.reshape(()), enabled.reshape(()) != 0
    steps, inside = _steps(x, 1 / scale, zero_point, low, high)
    return torch.where(on, (steps.float() * scale).to(x.dtype), x), inside | ~on


@replaces(aten.fake_quantize_per_channel_affine_cachemask.default)
def per_channel(x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """The same with a scale and a zero point for each place along a dim; products are of the dtype of x."""
    shape = [1] * x.dim()
    shape[axis] = -1
    scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    steps, inside = _steps(x, 1 / scale, zero_point, low, high)
    return (steps * scale).to(x.dtype), inside


def _steps(x: Tensor, inverse: Tensor | float, zero_point: Tensor | int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """(how many steps of the scale x is, limited to the range; whether it is in range). NaN is the least integer."""
    steps = (x * inverse).round() + zero_point
    steps = torch.where(steps.isnan(), low - 1, steps)
    return steps.clamp(low, high) - zero_point, (steps >= low) & (steps <= high)
