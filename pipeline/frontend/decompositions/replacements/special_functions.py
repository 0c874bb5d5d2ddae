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


@replaces(aten.erfc.default)
def erfc(x: Tensor) -> Tensor:
    """erfc(x) → 1 - erf(x) in float64; above 1.25, where that cancels, exp(-x²) / x times a function close to 0.56."""
    dtype = x.dtype if is_float(x) else torch.get_default_dtype()
    wide = x.double()
    return torch.where(wide < 1.25, 1 - wide.erf(), _erfc_tail(wide.clamp(1.25, 28))).to(dtype)


def _erfc_tail(x: Tensor) -> Tensor:
    """erfc on [1.25, 28] as fdlibm's s_erf.c computes it; the square of x in two parts, the first of which is exact."""
    square = 1 / (x * x)
    near, far = (by_horner(square, above) / by_horner(square, below) for above, below in (_NEAR, _FAR))
    head = x.float().double()
    tail = (head - x) * (head + x) + torch.where(x < 1 / 0.35, near, far)
    return (-head * head - 0.5625).exp() * tail.exp() / x


def by_horner(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """By Horner's scheme; the constant comes first."""
    value = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


#: Numerator and denominator of log(x * exp(x²) * erfc(x)) + 0.5625 in 1 / x², for x below 1 / 0.35 and above.
_NEAR = (
    (
        -9.86494403484714822705e-03,
        -6.93858572707181764372e-01,
        -1.05586262253232909814e01,
        -6.23753324503260060396e01,
        -1.62396669462573470355e02,
        -1.84605092906711035994e02,
        -8.12874355063065934246e01,
        -9.81432934416914548592e00,
    ),
    (
        1.0,
        1.96512716674392571292e01,
        1.37657754143519042600e02,
        4.34565877475229228821e02,
        6.45387271733267880336e02,
        4.29008140027567833386e02,
        1.08635005541779435134e02,
        6.57024977031928170135e00,
        -6.04244152148580987438e-02,
    ),
)
_FAR = (
    (
        -9.86494292470009928597e-03,
        -7.99283237680523006574e-01,
        -1.77579549177547519889e01,
        -1.60636384855821916062e02,
        -6.37566443368389627722e02,
        -1.02509513161107724954e03,
        -4.83519191608651397019e02,
    ),
    (
        1.0,
        3.03380607434824582924e01,
        3.25792512996573918826e02,
        1.53672958608443695994e03,
        3.19985821950859553908e03,
        2.55305040643316442583e03,
        4.74528541206955367215e02,
        -2.24409524465858183362e01,
    ),
)
