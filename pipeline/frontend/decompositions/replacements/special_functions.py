"""Functions of one or two numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, in_float32, is_float, promoted, replaces

#: From here on n + 2 = n in float64, and so mish(x) = x.
_MISH_IS_X = 20.0


@replaces(aten.hardtanh.default)
def hardtanh(x: Tensor, low: Any = -1, high: Any = 1) -> Tensor:
    """hardtanh(x, low, high) → clamp(x, low, high): torch-mlir's makes a number of NaN; whole limits for integers."""
    return x.clamp(low, high) if is_float(x) else x.clamp(int(low), int(high))


@replaces(aten.trunc.default)
def trunc(x: Tensor) -> Tensor:
    """trunc(x) → floor(abs(x)) with the sign of x, also that of a zero, which torch-mlir loses."""
    return torch.copysign(x.abs().floor(), x) if is_float(x) else x.clone()


@replaces(aten.gelu.default)
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """gelu(x) → x * (1 + erf(x * sqrt(1 / 2))) / 2, as in eager, where torch-mlir divides by the square root of 2.

    gelu(x, tanh) → x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x³))), which torch-mlir's is not.
    """
    return x * (((x * math.sqrt(0.5)).erf() + 1) * 0.5) if approximate == "none" else _gelu_tanh(x)


def _gelu_tanh(x: Tensor) -> Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + inner.tanh())


@replaces(aten.elu.default)
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """elu(x) → where(x > 0, scale * x, alpha * scale * expm1(input_scale * x)); torch-mlir's exp(x) - 1 cancels."""
    return torch.where(x > 0, x * scale, (x * input_scale).expm1() * (alpha * scale))


@replaces(aten.round.decimals)
def round_to_decimals(x: Tensor, *, decimals: int) -> Tensor:
    """round(x, decimals) → round(x * 10^decimals) / 10^decimals, and the other way round for negative ones."""
    return in_float32(lambda x: _round_to(10.0 ** abs(decimals), decimals < 0, x))(x)


def _round_to(power: float, is_above_one: bool, x: Tensor) -> Tensor:
    return (x / power).round() * power if is_above_one else (x * power).round() / power


@replaces(aten.mish.default)
def mish(x: Tensor) -> Tensor:
    """mish(x) = x * tanh(log(1 + e)), e = exp(x) → x * n / (n + 2), where n = e² + 2 e: one exponential for three."""
    return in_float32(_mish)(x)


def _mish(x: Tensor) -> Tensor:
    e = x.clamp(max=_MISH_IS_X).exp()
    n = e * (e + 2)
    return x * (n / (n + 2))


@replaces(aten.hardshrink_backward.default, aten.softshrink_backward.default)
def shrink_backward(gradient: Tensor, x: Tensor, limit: float) -> Tensor:
    """softshrink_backward(g, x, l) → where(-l <= x <= l, 0, g)."""
    return torch.where((x >= -limit) & (x <= limit), torch.zeros_like(gradient), gradient)


@replaces(aten.hypot.default)
def hypot(a: Tensor, b: Tensor) -> Tensor:
    """hypot(a, b) → m * sqrt(1 + (n / m)²), where m and n are the greater and the lesser magnitude."""
    return in_float32(_hypot)(*promoted(a, b))


def _hypot(a: Tensor, b: Tensor) -> Tensor:
    a, b = a.abs(), b.abs()
    great, less = torch.maximum(a, b), torch.minimum(a, b)
    ratio = less / great
    exact = (great == 0) | (great == math.inf)
    infinite = (a == math.inf) | (b == math.inf)
    scaled = torch.where(exact, great, great * (1 + ratio * ratio).sqrt())
    return torch.where(infinite, torch.full_like(a, math.inf), scaled)


def by_horner(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """By Horner's scheme; the constant comes first."""
    value = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value
