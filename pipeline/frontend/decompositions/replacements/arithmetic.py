"""Integer and mixed arithmetic: bits, products with bools, division, powers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import (
    Decomposition,
    aten,
    in_float32,
    is_float,
    promoted,
    promoted_in_float32,
    replaces,
    wrapped,
)


def _bitwise(op: Any) -> Decomposition:
    def decomposed(a: Any, b: Any) -> Tensor:
        return op(*promoted(a, b))

    decomposed.__doc__ = f"{op}(a, number) → {op}(a, tensor)."
    return decomposed


for _name in ("and", "or", "xor"):
    _op = getattr(aten, f"bitwise_{_name}")
    replaces(_op.Scalar, _op.Scalar_Tensor)(_bitwise(_op.Tensor))
for _old, _new in ((aten.__lshift__, aten.bitwise_left_shift), (aten.__rshift__, aten.bitwise_right_shift)):
    replaces(_old.Tensor, _old.Scalar)(_bitwise(_new.Tensor))
for _op in (aten.bitwise_left_shift, aten.bitwise_right_shift):
    replaces(_op.Tensor_Scalar, _op.Scalar_Tensor)(_bitwise(_op.Tensor))


@replaces(aten.mul.Tensor, aten.mul.Scalar)
def mul(a: Tensor, b: Any) -> Tensor:
    """mul(x: bool, number) → mul(x as the result's dtype, number), on which torch-mlir crashes."""
    dtype = torch.result_type(a, b)
    if a.dtype != torch.bool or dtype == torch.bool:
        return NotImplemented
    return a.to(dtype) * b


@replaces(aten.addbmm.default)
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """addbmm(x, a, b) → beta * x + alpha * the sum of a @ b over the batch; x is not looked at for a beta of 0."""
    product = alpha * torch.bmm(a, b).sum(0, dtype=a.dtype)
    return product if beta == 0 else beta * x + product


@replaces(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div(a: Tensor, b: Any, rounding_mode: str | None = None) -> Tensor:
    """div(a, b, mode): see `floor_divide` for `floor`; `trunc` in floating point → trunc(a / b)."""
    if rounding_mode is None:
        return a / b
    first, second = promoted(a, b)
    if first.dtype == torch.bool:
        return NotImplemented
    if rounding_mode == "floor":
        return floor_divide(a, b)
    if is_float(first):
        return promoted_in_float32(lambda first, second: (first / second).trunc(), a, b)
    return (
        NotImplemented
        if isinstance(b, Tensor) and a.dtype == b.dtype
        else aten.div.Tensor_mode(first, second, rounding_mode="trunc")
    )


@replaces(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(a: Any, b: Any) -> Tensor:
    """floor_divide(a, b) → see `_floor_divide_floats` and `floor_divide_integers`."""
    return promoted_in_float32(_floor_divide_floats if is_float(a, b) else floor_divide_integers, a, b)


def floor_divide_integers(a: Tensor, b: Tensor) -> Tensor:
    """A // b → trunc(a / b) - (it does not divide and the signs differ); torch-mlir divides in floating point."""
    quotient = aten.div.Tensor_mode(a, b, rounding_mode="trunc")
    if not a.dtype.is_signed:
        return quotient
    rest = a - quotient * b
    return quotient - _is_rounded_up(rest, b).to(a.dtype)


def _is_rounded_up(rest: Tensor, b: Tensor) -> Tensor:
    """Whether truncating a quotient with this rest went up: its sign differs from the divisor's."""
    return torch.bitwise_and(rest != 0, torch.bitwise_xor(rest < 0, b < 0))


def _floor_divide_floats(a: Tensor, b: Tensor) -> Tensor:
    """A // b as torch computes it (div_floor_floating): (a - fmod(a, b)) / b, moved to a whole number."""
    rest = aten.fmod.Tensor(a, b)
    quotient = (a - rest) / b
    quotient = torch.where(_is_rounded_up(rest, b), quotient - 1, quotient)
    whole = quotient.floor()
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    whole = torch.where(quotient == 0, torch.copysign(torch.zeros_like(a), a / b), whole)
    return torch.where(b == 0, a / b, whole)


@replaces(aten.remainder.Scalar)
def remainder_of_number(x: Tensor, number: Any) -> Tensor:
    """remainder(x: u8, -3) → remainder(x, 253)."""
    near = wrapped(number, x)
    return NotImplemented if near is number or near == number else aten.remainder.Scalar(x, near)


@replaces(aten.remainder.Scalar_Tensor)
def remainder(a: Any, b: Tensor) -> Tensor:
    """remainder(number, b) → remainder(tensor, b)."""
    return aten.remainder.Tensor(*promoted(a, b))


@replaces(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(a: Tensor, b: Any) -> Tensor:
    """fmod(a, b) → copysign(remainder(abs(a), abs(b)), a), which is exact; integers: a - trunc(a / b) * b."""
    first, second = promoted(a, b)
    if not is_float(first):
        return first - aten.div.Tensor_mode(first, second, rounding_mode="trunc") * second
    return torch.copysign(aten.remainder.Tensor(first.abs(), second.abs()), first)


@replaces(aten.pow.Tensor_Scalar)
def pow_scalar(x: Tensor, exponent: Any) -> Tensor:
    """pow(x, n) → x * x * .. for a small whole n; integers to any whole n by squaring; x ** ±0.5 → (r)sqrt(x).

    torch-mlir has a form of its own for n = -2, which is -inf at 0.
    """
    if isinstance(exponent, (torch.SymInt, torch.SymFloat)):
        return aten.pow.Tensor_Tensor(*promoted(x, exponent))
    if not is_float(x, exponent):  # a negative exponent is an error in eager
        return _whole_power(x.to(torch.result_type(x, exponent)), exponent)
    if not is_float(x):
        return x.to(torch.result_type(x, exponent)) ** exponent
    if exponent in (2, 3):
        return in_float32(lambda x: _whole_power(x, int(exponent)))(x)
    if exponent == -2:
        return torch.reciprocal(x * x)
    special = {0.5: torch.sqrt, -0.5: torch.rsqrt, -1: torch.reciprocal}.get(exponent)
    return NotImplemented if special is None else special(x)


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


@replaces(aten.true_divide.Tensor)
def true_divide(x: Tensor, y: Any) -> Tensor:
    """true_divide(x, y) → div(x, y)."""
    return aten.div.Tensor(x, y)


@replaces(aten.pow.Scalar)
def pow_of_scalar(base: Any, exponent: Tensor) -> Tensor:
    """pow(number, e) → pow(tensor, e)."""
    return aten.pow.Tensor_Tensor(*promoted(base, exponent))


@replaces(aten.pow.Tensor_Tensor)
def pow_tensor(base: Tensor, exponent: Tensor) -> Tensor:
    """pow(x, e) of integers → the product of x ** (2 ** k) over the bits of e; for e < 0 see below."""
    base, exponent = promoted(base, exponent)
    if is_float(base) or base.dtype == torch.bool:
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
