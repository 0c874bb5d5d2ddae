"""Ops of ONNX Runtime's own, of the domain com.microsoft, that its quantizer and optimizer write."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import MICROSOFT, op


@op("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(
    call: NodeCall,
    a: torch.Tensor,
    b: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor | None = None,
    groups: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """a times the transpose of b, whose rows are blocks of 4 or 8 bits, each with a scale and a zero point."""
    k, n, bits, block = (call.get(name) for name in ("K", "N", "bits", "block_size"))
    if bits not in (4, 8) or groups is not None:
        raise call.error("weights of 4 or 8 bits in the order of their columns are supported")
    count = -(-k // block)
    whole = _unpacked(b.reshape(n, count, -1), bits).to(a.dtype)
    shift = 2.0 ** (bits - 1) if zeros is None else _zero_points(zeros, bits, n, count).to(a.dtype)
    weight = (whole - shift) * scales.reshape(n, count, 1).to(a.dtype)
    return F.linear(a, weight.reshape(n, count * block)[:, :k], bias)


def _zero_points(zeros: torch.Tensor, bits: int, n: int, count: int) -> torch.Tensor:
    if zeros.dtype != torch.uint8:
        return zeros.reshape(n, count, 1)
    return _unpacked(zeros.reshape(n, -1), bits)[:, :count].reshape(n, count, 1)


def _unpacked(packed: torch.Tensor, bits: int) -> torch.Tensor:
    """Bytes as their two halves, the lower first."""
    if bits == 8:
        return packed
    low, high = torch.bitwise_and(packed, 15), torch.bitwise_right_shift(packed, 4)
    return torch.stack([low, high], -1).flatten(-2)


@op("FusedMatMul", domain=MICROSOFT)
def fused_matmul(call: NodeCall, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """alpha a b, either transposed."""
    a = a.transpose(-1, -2) if call.get("transA") else a
    b = b.transpose(-1, -2) if call.get("transB") else b
    return torch.matmul(a, b) * call.get("alpha", 1.0)


@op("Gelu", "FastGelu", "BiasGelu", "QuickGelu", domain=MICROSOFT)
def gelu(call: NodeCall, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """GELU of x + bias."""
    x = x if bias is None else x + bias
    if call.node.op_type == "QuickGelu":
        return x * torch.sigmoid(x * call.get("alpha", 1.702))
    return F.gelu(x, approximate="tanh" if call.node.op_type == "FastGelu" else "none")


@op("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(
    call: NodeCall,
    x: torch.Tensor,
    skip: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor | None, ...]:
    """A layer norm of x + skip + bias, and the sum."""
    total = x + skip if bias is None else x + skip + bias
    return F.layer_norm(total, [total.shape[-1]], gamma, beta, call.get("epsilon", 1e-12)), None, None, total


@op("SimplifiedLayerNormalization", domain="")
def simplified_layer_normalization(call: NodeCall, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """A norm by the root of the mean square."""
    return F.rms_norm(x, [x.shape[-1]], scale, call.get("epsilon", 1e-5))


@op("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_binary(
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
    """A sum or product of quantized tensors, quantized: ONNX Runtime rounds behind the zero point, not before it."""
    x, y = a.to(torch.float32) - a_zero.to(torch.float32), b.to(torch.float32) - b_zero.to(torch.float32)
    if call.node.op_type == "QLinearAdd":
        result = x * (a_scale / y_scale) + y * (b_scale / y_scale)
    else:
        result = x * y * (a_scale * b_scale / y_scale)
    info = torch.iinfo(y_zero.dtype)
    return torch.round(result + y_zero.to(torch.float32)).clamp(info.min, info.max).to(y_zero.dtype)
