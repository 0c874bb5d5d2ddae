"""Ops that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op
from pipeline.frontend.onnx.ops.unsigned import in_signed, refuse_64_bits, unsigned_less

_UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Abs": torch.abs,
    "Acos": torch.acos,
    "Acosh": torch.acosh,
    "Asin": torch.asin,
    "Asinh": torch.asinh,
    "Atan": torch.atan,
    "Atanh": torch.atanh,
    "BitwiseNot": torch.bitwise_not,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "HardSwish": F.hardswish,
    "Identity": lambda x: x,
    "IsNaN": torch.isnan,
    "Log": torch.log,
    "Mish": F.mish,
    "Neg": torch.neg,
    "Not": torch.logical_not,
    "Reciprocal": torch.reciprocal,
    "Relu": torch.relu,
    "Round": torch.round,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Softsign": F.softsign,
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
    "Tanh": torch.tanh,
}

_BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "Add": torch.add,
    "And": torch.logical_and,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "Equal": torch.eq,
    "Mul": torch.mul,
    "Or": torch.logical_or,
    "Sub": torch.sub,
    "Xor": torch.logical_xor,
}

_ORDER: dict[str, tuple[Callable[..., torch.Tensor], bool, bool]] = {
    # the comparison, and the same as (swapped, negated) `less`
    "Less": (torch.lt, False, False),
    "Greater": (torch.gt, True, False),
    "LessOrEqual": (torch.le, True, True),
    "GreaterOrEqual": (torch.ge, False, True),
}


@op(*_UNARY)
def unary(call: NodeCall, x: Any) -> Any:
    """A function of one tensor."""
    if isinstance(x, list) or x is None:  # Identity of a sequence or of an optional value
        return x
    return in_signed(_UNARY[call.node.op_type], x)


@op(*_BINARY)
def binary(call: NodeCall, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A function of two tensors; before version 7 the second one is broadcast from `axis` on."""
    return in_signed(_BINARY[call.node.op_type], a, _aligned(call, a, b))


@op(*_ORDER)
def comparison(call: NodeCall, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A comparison of two tensors."""
    function, swapped, negated = _ORDER[call.node.op_type]
    b = _aligned(call, a, b)
    if a.dtype != torch.uint64:
        return in_signed(function, a, b)
    less = unsigned_less(b, a) if swapped else unsigned_less(a, b)
    return torch.logical_not(less) if negated else less


def _aligned(call: NodeCall, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The second operand with trailing dims of one, where an early version says at which axis it begins."""
    axis = call.get("axis")
    if axis is None or not call.get("broadcast") or call.version >= 7:
        return b
    return b.reshape(*b.shape, *[1] * (a.dim() - axis % a.dim() - b.dim()))


@op("Div")
def div(call: NodeCall, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a / b; of integers towards zero."""
    b = _aligned(call, a, b)
    refuse_64_bits(a)
    if a.is_floating_point() or a.is_complex():
        return a / b
    return in_signed(lambda x, y: torch.div(x, y, rounding_mode="trunc"), a, b)


@op("Mod")
def mod(call: NodeCall, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The remainder, with the sign of the divisor; with `fmod` that of the dividend."""
    refuse_64_bits(a)
    return in_signed(torch.fmod if call.get("fmod") else torch.remainder, a, b)


@op("Pow")
def power(call: NodeCall, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a to the power of b, in a's type."""
    b = _aligned(call, a, b)
    if a.dtype.is_floating_point:
        return torch.pow(a, b).to(a.dtype)
    if b.dtype.is_floating_point:
        return torch.pow(a.to(torch.float64), b.to(torch.float64)).to(a.dtype)
    wide = torch.pow(a.to(torch.int64), b.to(torch.int64))
    return wide.to(a.dtype)


@op("BitShift")
def bit_shift(call: NodeCall, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a shifted by b bits; its types are unsigned."""
    if call.get("direction") == "LEFT":
        return in_signed(torch.bitwise_left_shift, a, b)
    refuse_64_bits(a)
    return in_signed(torch.bitwise_right_shift, a, b)


@op("Max", "Min", "Sum", "Mean")
def variadic(call: NodeCall, *tensors: torch.Tensor) -> torch.Tensor:
    """A function of any number of tensors."""
    functions = {"Max": torch.maximum, "Min": torch.minimum, "Sum": torch.add, "Mean": torch.add}
    name = call.node.op_type
    result = tensors[0]
    for tensor in tensors[1:]:
        if result.dtype == torch.uint64 and name in ("Max", "Min"):
            less = unsigned_less(result, tensor)
            left, right = (tensor, result) if name == "Max" else (result, tensor)
            result = torch.where(less, left.view(torch.int64), right.view(torch.int64)).view(torch.uint64)
        else:
            result = in_signed(functions[name], result, tensor)
    return result / len(tensors) if name == "Mean" else result


@op("Where")
def where(call: NodeCall, condition: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Elements of a or b."""
    return in_signed(lambda x, y: torch.where(condition, x, y), a, b)


@op("Clip")
def clip(call: NodeCall, x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    """x between two bounds, which before version 11 are attributes; the upper one wins."""
    low = call.get("min") if low is None else low
    high = call.get("max") if high is None else high
    if low is not None:
        x = in_signed(torch.maximum, x, _like(low, x))
    return x if high is None else in_signed(torch.minimum, x, _like(high, x))


def _like(value: Any, x: torch.Tensor) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.full((), value, dtype=x.dtype)


@op("IsInf")
def is_inf(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Which elements are infinite, of the signs that are asked for."""
    infinite = torch.isinf(x)
    if not call.get("detect_negative", 1):
        infinite = infinite & (x > 0)
    return infinite if call.get("detect_positive", 1) else infinite & (x < 0)


@op("Elu", "Celu", "LeakyRelu", "Selu", "HardSigmoid", "ThresholdedRelu", "Shrink", "Softplus", "Gelu", "Swish")
def activation(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """An activation with parameters."""
    alpha = call.get("alpha")
    match call.node.op_type:
        case "Elu":
            return F.elu(x, 1.0 if alpha is None else alpha)
        case "Celu":
            return F.celu(x, 1.0 if alpha is None else alpha)
        case "LeakyRelu":
            return F.leaky_relu(x, 0.01 if alpha is None else alpha)
        case "Selu":
            alpha = 1.67326319217681884765625 if alpha is None else alpha
            gamma = call.get("gamma", 1.05070102214813232421875)
            return gamma * torch.where(x > 0, x, alpha * torch.expm1(torch.clamp(x, max=0)))
        case "HardSigmoid":
            return torch.clamp(x * (0.2 if alpha is None else alpha) + call.get("beta", 0.5), 0, 1)
        case "ThresholdedRelu":
            return torch.where(x > (1.0 if alpha is None else alpha), x, 0).to(x.dtype)
        case "Shrink":
            lambd, bias = call.get("lambd", 0.5), call.get("bias", 0.0)
            return in_signed(lambda y: torch.where(y < -lambd, y + bias, torch.where(y > lambd, y - bias, 0)), x)
        case "Gelu":
            return F.gelu(x, approximate=call.get("approximate", "none"))
        case "Swish":
            return x * torch.sigmoid(x * (1.0 if alpha is None else alpha))
        case _:
            return F.softplus(x)


@op("PRelu")
def prelu(call: NodeCall, x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """x, or slope times x where x is negative."""
    if call.version < 7 and slope.numel() > 1 and slope.dim() == 1:
        slope = slope.reshape(-1, *[1] * (x.dim() - 2))
    return in_signed(lambda y, s: torch.where(y < 0, s * y, y), x, slope)


@op("Softmax", "LogSoftmax", "Hardmax")
def softmax(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Along an axis; before version 13 along all dims from the axis on, taken for one."""
    axis = call.get("axis", -1 if call.version >= 13 else 1)
    y = x if call.version >= 13 else x.flatten(axis % x.dim()) if axis % max(x.dim(), 1) < x.dim() else x
    dim = axis if call.version >= 13 else -1
    if call.node.op_type == "Softmax":
        y = torch.softmax(y, dim)
    elif call.node.op_type == "LogSoftmax":
        y = torch.log_softmax(y, dim)
    else:
        places = torch.arange(y.shape[dim]).reshape([-1 if at == dim % y.dim() else 1 for at in range(y.dim())])
        y = (y.argmax(dim, keepdim=True) == places).to(x.dtype)
    return y.reshape(x.shape)
