"""Ops of PT2E's quantized models, `quantized_decomposed.*`, as the arithmetic that torch documents them by.

torch-mlir lowers some of them, and divides by scales where torch multiplies by their reciprocals: elements halfway
between two integers would be rounded to another one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

#: The module that registers the ops, if anybody has asked for them.
_MODULE = "torch.ao.quantization.fx._decomposed"

#: How many columns of a weight of four bits torch packs together, by what it takes the CPU to be capable of.
_COLUMNS = {"AVX512": 64, "AVX2": 32}

#: Functions of that module that are arithmetic on tensors alone, by the op that they are.
_TORCHS = {
    "dequantize_per_tensor.default": "dequantize_per_tensor",
    "quantize_per_channel.default": "quantize_per_channel",
    "choose_qparams_per_token.default": "choose_qparams_per_token",
    "choose_qparams_per_token_asymmetric.default": "choose_qparams_per_token_asymmetric",
    "quantize_per_token.default": "quantize_per_token",
    "dequantize_per_token.default": "dequantize_per_token",
    "dequantize_per_channel_group.default": "dequantize_per_channel_group",
}


def is_loaded() -> bool:
    """Whether the ops are there: importing what registers them is left to those who use them."""
    return _MODULE in sys.modules


def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """The decompositions by op; none where the ops are not loaded."""
    if not is_loaded():
        return {}
    library, functions = torch.ops.quantized_decomposed, vars(sys.modules[_MODULE])
    table = {_overload(library, op): functions[name] for op, name in _TORCHS.items()}
    for form in ("tensor", "tensor2"):
        table[_overload(library, f"quantize_per_tensor.{form}")] = quantize_by_tensors
        table[_overload(library, f"dequantize_per_tensor.{form}")] = dequantize_by_tensors
    table[_overload(library, "quantize_per_tensor.default")] = quantize_by_numbers
    table[_overload(library, "dequantize_per_channel.default")] = dequantize_by_channels
    table[_overload(library, "choose_qparams.tensor")] = choose_qparams
    table[_overload(library, "choose_qparams_symmetric.tensor")] = choose_qparams_symmetric
    table[_overload(library, "quantize_per_channel_group.default")] = quantize_by_groups
    return table


def _overload(library: Any, name: str) -> Any:
    op, _, overload = name.partition(".")
    return getattr(getattr(library, op), overload)


def int8_product(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """`aten._weight_int8pack_mm`: x @ weight.T * scales, added up in float32 and rounded once."""
    return (x.to(torch.float32) @ weight.to(torch.float32).T * scales.to(torch.float32)).to(x.dtype)


def knows_int4_packing() -> bool:
    """Whether `int4_product` reads weights as torch packs them on this machine."""
    return torch.backends.cpu.get_cpu_capability() in _COLUMNS


def int4_product(x: torch.Tensor, packed: torch.Tensor, group: int, scales_and_zeros: torch.Tensor) -> torch.Tensor:
    """`aten._weight_int4pack_mm_for_cpu`: x @ ((q - 8) * scale + zero).T, added up in float32 and rounded once.

    `packed` is as torch packs on this machine: for each step of the sum, of so many columns as `_COLUMNS` says the
    first half are the lower halves of bytes; of columns that are left, each other one is.

    Args:
        packed: uint8, [N, K / 2]; scales_and_zeros: [K / group, N, 2].
    """
    n, k = packed.shape[0], 2 * packed.shape[1]
    columns = _COLUMNS[torch.backends.cpu.get_cpu_capability()]
    whole = n // columns * columns
    blocks = packed[:whole].reshape(-1, k, columns // 2)
    parts = [torch.stack([blocks & 15, blocks >> 4], 1).transpose(2, 3).reshape(whole, k)]
    if whole < n:
        rest = packed[whole:].reshape(k, -1)
        parts.append(torch.stack([rest & 15, rest >> 4], 2).reshape(k, -1).T)
    q = torch.cat(parts).reshape(n, k // group, group)
    scale, zero = (part.T.unsqueeze(2) for part in scales_and_zeros.to(torch.float32).unbind(2))
    weight = (q.to(torch.float32) - 8) * scale + zero
    return (x.to(torch.float32) @ weight.flatten(1).T).to(x.dtype)


def quantize_by_numbers(
    x: torch.Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: torch.dtype
) -> torch.Tensor:
    """`quantize_per_tensor`: the reciprocal is rounded to float32 first, as torch's kernels have it."""
    whole = torch.round(x.to(torch.float32) * float(np.float32(1.0 / scale)))
    return torch.clamp(whole + zero_point if zero_point else whole, quant_min, quant_max).to(dtype)


def quantize_by_tensors(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    quant_min: int | torch.Tensor,
    quant_max: int | torch.Tensor,
    dtype: torch.dtype,
) -> torch.Tensor:
    """`quantize_per_tensor` with a scale and a zero point that are tensors of one element, and perhaps bounds."""
    inverse = (1.0 / scale.to(torch.float64)).to(torch.float32)
    whole = torch.round(x.to(torch.float32) * inverse) + zero_point
    return torch.clamp(whole, quant_min, quant_max).to(dtype)


def dequantize_by_tensors(
    q: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    quant_min: int | torch.Tensor,
    quant_max: int | torch.Tensor,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """`dequantize_per_tensor` with a scale and a zero point that are tensors of one element."""
    kind = out_dtype or torch.float32
    return (q.to(kind) - zero_point.to(kind)) * scale.to(kind)


def dequantize_by_channels(
    q: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """`dequantize_per_channel` in floats from the start, where torch has integers of 64 bits in between."""
    shape = [-1 if dim == axis else 1 for dim in range(q.dim())]
    whole = q.to(scales.dtype)
    if zero_points is not None:
        whole = whole - zero_points.to(scales.dtype).view(shape)
    return (whole * scales.view(shape)).to(out_dtype or torch.float32)


def choose_qparams(
    x: torch.Tensor, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """The scale (float64, [1]) and the zero point (int64, [1]) for the range of `x`, 0 included."""
    low, high = _range(x)
    scale = torch.clamp((high - low) / float(quant_max - quant_min), min=eps)
    zero_point = torch.clamp(quant_min - torch.round(low / scale).to(torch.int32), quant_min, quant_max)
    return scale.to(torch.float64).reshape(1), zero_point.to(torch.int64).reshape(1)


def choose_qparams_symmetric(
    x: torch.Tensor, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Likewise for a range around 0: the zero point is 0, and 128 of bytes without a sign."""
    low, high = _range(x)
    scale = torch.clamp(torch.maximum(-low, high) / (float(quant_max - quant_min) / 2), min=eps)
    zero_point = torch.full((1,), 128 if dtype == torch.uint8 else 0, dtype=torch.int64)
    return scale.to(torch.float64).reshape(1), zero_point


def _range(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    low, high = x.to(torch.float32).amin(), x.to(torch.float32).amax()
    return low.clamp(max=0.0), high.clamp(min=0.0)


def quantize_by_groups(
    x: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    group_size: int = 128,
) -> torch.Tensor:
    """`quantize_per_channel_group` of numbers, which torch asserts that they are."""
    if group_size > x.shape[-1] and scales.shape[-1] == 1:
        group_size = x.shape[-1]
    grouped = x.reshape(-1, group_size) * (1.0 / scales.reshape(-1, 1)) + zero_points.reshape(-1, 1)
    return grouped.round().clamp(quant_min, quant_max).to(dtype).reshape(x.shape)
