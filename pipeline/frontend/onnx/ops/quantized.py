"""Quantized numbers: q = round(x / scale) + zero point."""

from __future__ import annotations

from typing import Any

import torch

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.element_types import FOUR_BITS, torch_type
from pipeline.frontend.onnx.ops.convolutions import conv
from pipeline.frontend.onnx.ops.table import op
from pipeline.frontend.onnx.ops.unsigned import signed


def _along(value: torch.Tensor, x: torch.Tensor, axis: int, block: int) -> torch.Tensor:
    """A scale or zero point for every element: for the whole, for each slice of an axis, or for blocks of it."""
    if value.dim() == 0 or (value.dim() == 1 and value.shape[0] == 1 and x.dim() != 1):
        return value.reshape(())
    if block:
        return value.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    return value.reshape([-1 if at == axis % x.dim() else 1 for at in range(x.dim())]) if value.dim() == 1 else value


@op("QuantizeLinear")
def quantize_linear(
    call: NodeCall, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None = None
) -> torch.Tensor:
    """Rounded to even, saturated."""
    axis, block = call.get("axis", 1), call.get("block_size", 0)
    kind = _four_bits_or(call, zero)
    dtype = torch_type(kind, call.name) if kind is not None else torch.uint8 if zero is None else zero.dtype
    y = x.to(torch.float32) / _along(scale, x, axis, block).to(torch.float32)
    if dtype.is_floating_point:
        shift = 0 if zero is None else _along(zero.to(torch.float32), x, axis, block)
        return (y + shift).clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max).to(dtype)
    y = torch.round(y)
    if zero is not None:
        y = y + _along(signed(zero) if dtype == torch.uint16 else zero, x, axis, block).to(torch.float32)
    info = torch.iinfo(dtype)
    low, high = FOUR_BITS.get(kind or 0, (info.min, info.max))
    y = y.clamp(low, high)
    return y.to(torch.int64).to(dtype) if dtype == torch.uint16 else y.to(dtype)


def _four_bits_or(call: NodeCall, zero: torch.Tensor | None) -> int | None:
    """The element type that the node names, or that its zero point has where that is one of four bits."""
    kind = call.get("output_dtype")
    return kind or call.run.four_bits.get(call.node.input[2] if zero is not None else "")


@op("DequantizeLinear")
def dequantize_linear(
    call: NodeCall, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None = None
) -> torch.Tensor:
    """(q - zero point) * scale, in the scale's type."""
    axis, block = call.get("axis", 1), call.get("block_size", 0)
    y = _whole(x)
    if zero is not None:
        y = y - _along(_whole(zero), x, axis, block)
    to = call.dtype("output_dtype", scale.dtype)
    return (y.to(torch.float32) * _along(scale, x, axis, block).to(torch.float32)).to(to)


def _whole(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float32) if x.dtype.is_floating_point else signed(x).to(torch.int32)


@op("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: NodeCall, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """To bytes, by the least and greatest elements."""
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    scale = (high - low) / 255
    safe = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero = torch.round((0 - low / safe).clamp(0, 255))
    y = (torch.round(x / safe) + zero).clamp(0, 255)
    return y.to(torch.uint8), scale, zero.to(torch.uint8)


@op("MatMulInteger")
def matmul_integer(
    call: NodeCall,
    a: torch.Tensor,
    b: torch.Tensor,
    a_zero: torch.Tensor | None = None,
    b_zero: torch.Tensor | None = None,
) -> torch.Tensor:
    """A product of bytes in i32."""
    return torch.matmul(_centred(a, a_zero, -2), _centred(b, b_zero, -1))


def _centred(x: torch.Tensor, zero: torch.Tensor | None, axis: int) -> torch.Tensor:
    """x - zero point in i32; one of more dims than one, or of one, is along the axis."""
    wide = x.to(torch.int32)
    if zero is None:
        return wide
    shift = zero.to(torch.int32)
    if shift.dim() == 1 and shift.shape[0] > 1:
        shift = shift.unsqueeze(-1) if axis == -2 else shift
    return wide - (shift if shift.numel() > 1 else shift.reshape(()))


@op("ConvInteger")
def conv_integer(
    call: NodeCall,
    x: torch.Tensor,
    weight: torch.Tensor,
    x_zero: torch.Tensor | None = None,
    w_zero: torch.Tensor | None = None,
) -> torch.Tensor:
    """A convolution of bytes in i32."""
    return _integer_conv(call, _centred(x, x_zero, 0), _of_channels(weight, w_zero))


def _of_channels(weight: torch.Tensor, zero: torch.Tensor | None) -> torch.Tensor:
    wide = weight.to(torch.int32)
    if zero is None:
        return wide
    shift = zero.to(torch.int32)
    return wide - (shift.reshape(-1, *[1] * (weight.dim() - 1)) if shift.numel() > 1 else shift.reshape(()))


def _integer_conv(call: NodeCall, x: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> torch.Tensor:
    """In f64, in which sums of products of bytes are exact."""
    wide = conv(call, x.to(torch.float64), weight.to(torch.float64), None)
    whole = wide.to(torch.int32)
    return whole if bias is None else whole + bias.reshape(-1, *[1] * (x.dim() - 2))


def _requantized(y: torch.Tensor, factor: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    """i32 to bytes: round(y * factor) + zero point, saturated."""
    info = torch.iinfo(zero.dtype)
    shifted = torch.round(y.to(torch.float32) * factor) + zero.to(torch.float32)
    return shifted.clamp(info.min, info.max).to(zero.dtype)


@op("QLinearMatMul")
def qlinear_matmul(
    call: NodeCall,
    a: torch.Tensor,
    a_scale: torch.Tensor,
    a_zero: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    b_zero: torch.Tensor,
    y_scale: torch.Tensor,
    y_zero: torch.Tensor,
) -> torch.Tensor:
    """A product of quantized matrices, quantized."""
    product = torch.matmul(_centred(a, a_zero, -2), _centred(b, b_zero, -1))
    rows = a_scale.unsqueeze(-1) if a_scale.dim() == 1 and a_scale.shape[0] > 1 else a_scale
    factor = rows.to(torch.float32) * b_scale.to(torch.float32) / y_scale.to(torch.float32)
    return _requantized(product, factor, y_zero)


@op("QLinearConv")
def qlinear_conv(
    call: NodeCall,
    x: torch.Tensor,
    x_scale: torch.Tensor,
    x_zero: torch.Tensor,
    weight: torch.Tensor,
    w_scale: torch.Tensor,
    w_zero: torch.Tensor,
    y_scale: torch.Tensor,
    y_zero: torch.Tensor,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """A convolution of quantized tensors, quantized."""
    y = _integer_conv(call, _centred(x, x_zero, 0), _of_channels(weight, w_zero), bias)
    channels = w_scale.reshape(-1, *[1] * (x.dim() - 2)) if w_scale.numel() > 1 else w_scale.reshape(())
    return _requantized(y, x_scale.reshape(()) * channels / y_scale.reshape(()), y_zero.reshape(()))
