"""Ops of torch in terms of others: those that torch-mlir lacks or gets wrong, so that they never reach it.

Each function replaces one overload while torch.export runs its decompositions, opens with before → after, and returns
NotImplemented where the op can stay as it is. What is rewritten after that, on the graph, is in `graph_passes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

aten = torch.ops.aten

Decomposition = Callable[..., Any]

_OURS: dict[Any, Decomposition] = {}

#: torch's own decompositions that torch-mlir's table leaves out, though its lowering of these ops is missing or wrong.
_TORCHS = (
    aten.isfinite.default,
    aten.logaddexp.default,
)


def table() -> dict[Any, Decomposition]:
    """The decompositions that a captured model is brought to core ops with."""
    return {**get_decomposition_table(), **get_decompositions(_TORCHS), **_OURS}


def _replaces(*overloads: Any) -> Callable[[Decomposition], Decomposition]:
    def register(function: Decomposition) -> Decomposition:
        _OURS.update(dict.fromkeys(overloads, function))
        return function

    return register


def _is_float(*values: Any) -> bool:
    """Whether torch computes an op on these operands in floating point."""
    return any(value.is_floating_point() if isinstance(value, Tensor) else isinstance(value, float) for value in values)


def _promoted(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Two operands, one of them perhaps a number, as tensors of their common dtype."""
    dtype = torch.result_type(a, b)
    device = (a if isinstance(a, Tensor) else b).device
    first, second = (
        value.to(dtype) if isinstance(value, Tensor) else torch.full((), value, dtype=dtype, device=device)
        for value in (a, b)
    )
    return first, second


def _in_float32(function: Decomposition) -> Decomposition:
    """The function with operands of 16 bits computed in float32 and rounded once, as torch does."""

    def wrapped(*tensors: Tensor) -> Tensor:
        dtype = tensors[0].dtype
        if dtype not in (torch.float16, torch.bfloat16):
            return function(*tensors)
        return function(*(tensor.float() for tensor in tensors)).to(dtype)

    return wrapped


# Signs and comparisons


@_replaces(aten.neg.default)
def neg(x: Tensor) -> Tensor:
    """neg(x) → x * -1 for integers, which torch-mlir negates in floating point."""
    return NotImplemented if _is_float(x) else x * -1


@_replaces(aten.abs.default)
def absolute(x: Tensor) -> Tensor:
    """abs(x) → x for unsigned integers."""
    return NotImplemented if x.dtype.is_signed else x.clone()


@_replaces(aten.signbit.default)
def signbit(x: Tensor) -> Tensor:
    """signbit(x) → x < 0 or 1/x < 0, which is how -0.0 shows; a NaN counts as positive."""
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0)) if _is_float(x) else x < 0


@_replaces(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(x: Tensor, sign: Any) -> Tensor:
    """copysign(x, s) → where(signbit(s), -abs(x), abs(x))."""
    x, sign = _promoted(x, sign)
    if not _is_float(x):
        x = x.to(torch.get_default_dtype())
    magnitude = x.abs()
    return torch.where(sign.signbit(), magnitude * -1, magnitude)


@_replaces(aten.maximum.default)
def maximum(a: Tensor, b: Tensor) -> Tensor:
    """maximum(a, b) → where(a > b or a is NaN, a, b): torch-mlir's loses the NaN of the first operand."""
    a, b = _promoted(a, b)
    return torch.where((a > b) | (a != a), a, b) if _is_float(a) else NotImplemented


@_replaces(aten.minimum.default)
def minimum(a: Tensor, b: Tensor) -> Tensor:
    """minimum(a, b) → where(a < b or a is NaN, a, b)."""
    a, b = _promoted(a, b)
    return torch.where((a < b) | (a != a), a, b) if _is_float(a) else NotImplemented


@_replaces(aten.fmax.default)
def fmax(a: Tensor, b: Tensor) -> Tensor:
    """fmax(a, b) → where(a >= b or b is NaN, a, b)."""
    a, b = _promoted(a, b)
    return torch.where((a >= b) | (b != b), a, b) if _is_float(a) else torch.maximum(a, b)


@_replaces(aten.fmin.default)
def fmin(a: Tensor, b: Tensor) -> Tensor:
    """fmin(a, b) → where(a <= b or b is NaN, a, b)."""
    a, b = _promoted(a, b)
    return torch.where((a <= b) | (b != b), a, b) if _is_float(a) else torch.minimum(a, b)


@_replaces(aten.clamp.default, aten.clamp.Tensor)
def clamp(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    """clamp(x, low, high) → where(x < low, low, ..) then where(.. > high, high, ..); a NaN stays, as in torch."""
    if low is not None:
        x = _limit(x, low, torch.lt)
    if high is not None:
        x = _limit(x, high, torch.gt)
    return x


@_replaces(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(x: Tensor, low: Any) -> Tensor:
    """clamp_min(x, low) → where(x < low, low, x)."""
    return _limit(x, low, torch.lt)


@_replaces(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(x: Tensor, high: Any) -> Tensor:
    """clamp_max(x, high) → where(x > high, high, x)."""
    return _limit(x, high, torch.gt)


def _limit(x: Tensor, limit: Any, beyond: Decomposition) -> Tensor:
    x, limit = _promoted(x, limit)
    passed = beyond(x, limit)
    if _is_float(limit) and limit.dim():
        passed = passed | (limit != limit)
    return torch.where(passed, limit, x)


@_replaces(aten.isclose.default)
def isclose(a: Tensor, b: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """isclose(a, b) → a == b or abs(a - b) is finite and at most atol + rtol * abs(b)."""
    close = a == b
    if equal_nan and _is_float(a):
        close = close | ((a != a) & (b != b))
    if rtol == 0 and atol == 0:
        return close
    first, second = (a, b) if _is_float(a) else (a.to(torch.get_default_dtype()), b.to(torch.get_default_dtype()))
    distance = (first - second).abs()
    return close | ((distance < math.inf) & (distance <= atol + (rtol * second).abs()))


# Bits


def _bitwise(op: Any) -> Decomposition:
    def decomposed(a: Any, b: Any) -> Tensor:
        return op(*_promoted(a, b))

    decomposed.__doc__ = f"{op}(a, number) → {op}(a, tensor)."
    return decomposed


for _name in ("and", "or", "xor"):
    _op = getattr(aten, f"bitwise_{_name}")
    _replaces(_op.Scalar, _op.Scalar_Tensor)(_bitwise(_op.Tensor))
for _old, _new in ((aten.__lshift__, aten.bitwise_left_shift), (aten.__rshift__, aten.bitwise_right_shift)):
    _replaces(_old.Tensor, _old.Scalar)(_bitwise(_new.Tensor))
for _op in (aten.bitwise_left_shift, aten.bitwise_right_shift):
    _replaces(_op.Tensor_Scalar, _op.Scalar_Tensor)(_bitwise(_op.Tensor))


# Division


@_replaces(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div(a: Tensor, b: Any, rounding_mode: str | None = None) -> Tensor:
    """div(a, b, mode): see `_floor_divide` for `floor`; `trunc` in floating point → trunc(a / b)."""
    if rounding_mode is None:
        return a / b
    first, second = _promoted(a, b)
    if first.dtype == torch.bool:
        return NotImplemented
    if rounding_mode == "floor":
        return _floor_divide(first, second)
    if _is_float(first):
        return (first / second).trunc()
    return NotImplemented if isinstance(b, Tensor) and a.dtype == b.dtype else aten.div.Tensor_mode(
        first, second, rounding_mode="trunc"
    )


@_replaces(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(a: Any, b: Any) -> Tensor:
    """floor_divide(a, b) → see `_floor_divide`."""
    return _floor_divide(*_promoted(a, b))


def _floor_divide(a: Tensor, b: Tensor) -> Tensor:
    return _in_float32(_floor_divide_floats)(a, b) if _is_float(a) else _floor_divide_integers(a, b)


def _floor_divide_integers(a: Tensor, b: Tensor) -> Tensor:
    """a // b → trunc(a / b) - (it does not divide and the signs differ); torch-mlir divides in floating point."""
    quotient = aten.div.Tensor_mode(a, b, rounding_mode="trunc")
    if not a.dtype.is_signed:
        return quotient
    rest = a - quotient * b
    return quotient - ((rest != 0) & ((rest < 0) != (b < 0))).to(a.dtype)


def _floor_divide_floats(a: Tensor, b: Tensor) -> Tensor:
    """a // b as torch computes it (c10's div_floor_floating): (a - fmod(a, b)) / b, moved to the nearest integer."""
    rest = aten.fmod.Tensor(a, b)
    quotient = (a - rest) / b
    quotient = torch.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
    whole = quotient.floor()
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    whole = torch.where(quotient == 0, torch.copysign(torch.zeros_like(a), a / b), whole)
    return torch.where(b == 0, a / b, whole)


@_replaces(aten.remainder.Scalar_Tensor)
def remainder(a: Any, b: Tensor) -> Tensor:
    """remainder(number, b) → remainder(tensor, b)."""
    return aten.remainder.Tensor(*_promoted(a, b))


@_replaces(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(a: Tensor, b: Any) -> Tensor:
    """fmod(a, b) → copysign(remainder(abs(a), abs(b)), a), which is exact; integers: a - trunc(a / b) * b."""
    first, second = _promoted(a, b)
    if not _is_float(first):
        return first - aten.div.Tensor_mode(first, second, rounding_mode="trunc") * second
    return torch.copysign(aten.remainder.Tensor(first.abs(), second.abs()), first)


# Powers


@_replaces(aten.pow.Tensor_Scalar)
def pow_scalar(x: Tensor, exponent: Any) -> Tensor:
    """pow(x, n) → x * x * .. for a small whole n; integers to any whole n by squaring; x ** 0.5 → sqrt(x)."""
    if not _is_float(x, exponent):  # a negative exponent is an error in eager
        return _whole_power(x.to(torch.result_type(x, exponent)), exponent)
    if not _is_float(x):
        return x.to(torch.result_type(x, exponent)) ** exponent
    if exponent in (2, 3):
        return _whole_power(x, int(exponent))
    return x.sqrt() if exponent == 0.5 else NotImplemented


def _whole_power(x: Tensor, exponent: int) -> Tensor:
    if exponent == 0:
        return torch.ones_like(x)
    power, square = None, x
    while exponent:
        if exponent & 1:
            power = square if power is None else power * square
        exponent >>= 1
        square = square * square if exponent else square
    assert power is not None
    return power.clone() if power is x else power


@_replaces(aten.pow.Scalar)
def pow_of_scalar(base: Any, exponent: Tensor) -> Tensor:
    """pow(number, e) → pow(tensor, e)."""
    return aten.pow.Tensor_Tensor(*_promoted(base, exponent))


@_replaces(aten.pow.Tensor_Tensor)
def pow_tensor(base: Tensor, exponent: Tensor) -> Tensor:
    """pow(x, e) of integers → the product of x ** (2 ** k) over the bits k of e; 1 / x ** -e is whole for x = ±1 only."""
    base, exponent = _promoted(base, exponent)
    if _is_float(base) or base.dtype == torch.bool:
        return NotImplemented
    bits = torch.iinfo(exponent.dtype).bits - int(exponent.dtype.is_signed)
    power, square = torch.ones_like(base), base
    for bit in range(bits):
        power = torch.where((exponent >> bit) & 1 != 0, power * square, power)
        square = square * square
    if not exponent.dtype.is_signed:
        return power
    odd = torch.where(exponent & 1 != 0, base, torch.ones_like(base))
    whole = torch.where((base == 1) | (base == -1), odd, torch.zeros_like(base))
    return torch.where(exponent < 0, whole, power)


# Functions


@_replaces(aten.hypot.default)
def hypot(a: Tensor, b: Tensor) -> Tensor:
    """hypot(a, b) → m * sqrt(1 + (n / m)²), where m and n are the greater and the lesser magnitude."""
    return _in_float32(_hypot)(*_promoted(a, b))


def _hypot(a: Tensor, b: Tensor) -> Tensor:
    a, b = a.abs(), b.abs()
    great, less = torch.maximum(a, b), torch.minimum(a, b)
    ratio = less / great
    exact = (great == 0) | (great == math.inf)
    infinite = (a == math.inf) | (b == math.inf)
    scaled = torch.where(exact, great, great * (1 + ratio * ratio).sqrt())
    return torch.where(infinite, torch.full_like(a, math.inf), scaled)
