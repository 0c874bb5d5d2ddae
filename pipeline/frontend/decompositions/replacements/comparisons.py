"""Comparisons: minima and maxima, limits, equality, finiteness."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import (
    Decomposition,
    aten,
    is_float,
    promoted,
    replaces,
    wrapped,
)


@replaces(aten.maximum.default)
def maximum(a: Tensor, b: Tensor) -> Tensor:
    """maximum(a, b) → where(a > b or a is NaN, a, b): torch-mlir's loses the NaN of the first operand."""
    a, b = promoted(a, b)
    return torch.where((a > b) | (a != a), a, b) if is_float(a) else NotImplemented


@replaces(aten.minimum.default)
def minimum(a: Tensor, b: Tensor) -> Tensor:
    """minimum(a, b) → where(a < b or a is NaN, a, b)."""
    a, b = promoted(a, b)
    return torch.where((a < b) | (a != a), a, b) if is_float(a) else NotImplemented


@replaces(aten.fmax.default)
def fmax(a: Tensor, b: Tensor) -> Tensor:
    """fmax(a, b) → where(a >= b or b is NaN, a, b)."""
    a, b = promoted(a, b)
    return torch.where((a >= b) | (b != b), a, b) if is_float(a) else torch.maximum(a, b)


@replaces(aten.fmin.default)
def fmin(a: Tensor, b: Tensor) -> Tensor:
    """fmin(a, b) → where(a <= b or b is NaN, a, b)."""
    a, b = promoted(a, b)
    return torch.where((a <= b) | (b != b), a, b) if is_float(a) else torch.minimum(a, b)


@replaces(aten.clamp.default, aten.clamp.Tensor)
def clamp(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    """clamp(x, low, high) → where(x < low, low, ..) then where(.. > high, high, ..); a NaN stays, as in torch."""
    if low is not None:
        x = _limit(x, low, torch.lt)
    if high is not None:
        x = _limit(x, high, torch.gt)
    return x


@replaces(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(x: Tensor, low: Any) -> Tensor:
    """clamp_min(x, low) → where(x < low, low, x)."""
    return _limit(x, low, torch.lt)


@replaces(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(x: Tensor, high: Any) -> Tensor:
    """clamp_max(x, high) → where(x > high, high, x)."""
    return _limit(x, high, torch.gt)


def _limit(x: Tensor, limit: Any, beyond: Decomposition) -> Tensor:
    if x.dtype == torch.uint8 and isinstance(limit, int) and limit < 0:
        limit = wrapped(limit, x)  # as in eager, which refuses limits over 255
    x, limit = promoted(x, limit)
    passed = beyond(x, limit)
    if is_float(limit) and limit.dim():
        passed = passed | (limit != limit)
    return torch.where(passed, limit, x)


@replaces(aten.isclose.default)
def isclose(a: Tensor, b: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """isclose(a, b) → a == b or abs(a - b) is finite and at most atol + rtol * abs(b)."""
    close = a == b
    if equal_nan and is_float(a):
        close = close | ((a != a) & (b != b))
    if rtol == 0 and atol == 0:
        return close
    first, second = (a, b) if is_float(a) else (a.to(torch.get_default_dtype()), b.to(torch.get_default_dtype()))
    distance = (first - second).abs()
    return close | ((distance < math.inf) & (distance <= atol + (rtol * second).abs()))


@replaces(aten.ne.Tensor)
def ne(a: Tensor, b: Tensor) -> Tensor:
    """ne(a, b) of bools → xor(a, b), which torch-mlir compares wrongly with a broadcast operand."""
    return torch.bitwise_xor(a, b) if a.dtype == b.dtype == torch.bool else NotImplemented


@replaces(aten.eq.Tensor)
def eq(a: Tensor, b: Tensor) -> Tensor:
    """eq(a, b) of bools → not xor(a, b); of floats → not ne(a, b): torch-mlir folds x == x, which NaN is not."""
    if a.dtype == b.dtype == torch.bool:
        return torch.logical_not(torch.bitwise_xor(a, b))
    return torch.logical_not(torch.ne(a, b)) if is_float(a, b) else NotImplemented


def _beside_number(op: Any) -> Decomposition:
    def decomposed(x: Tensor, number: Any) -> Tensor:
        if x.dtype == torch.bool and type(number) is int:
            return op(x.to(torch.int64), number)
        near = wrapped(number, x)
        return NotImplemented if near is number or near == number else op(x, near)

    decomposed.__doc__ = f"{op}(x: u8, 300) → {op}(x, 44); {op}(x: bool, -1) → {op}(x as integers, -1)."
    return decomposed


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _op = getattr(aten, _name).Scalar
    replaces(_op)(_beside_number(_op))


@replaces(aten.isfinite.default)
def isfinite(x: Tensor) -> Tensor:
    """isfinite(x) → abs(x) is neither infinity nor NaN; true for integers."""
    return x.abs() < math.inf if is_float(x) else torch.ones_like(x, dtype=torch.bool)
