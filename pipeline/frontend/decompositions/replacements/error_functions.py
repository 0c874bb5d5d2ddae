"""Relatives of erf, computed in float64: each from erf where that does not cancel, else from a function of 1 / x²."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.special_functions import by_horner
from pipeline.frontend.decompositions.replacements.table import aten, is_float, replaces

#: Below this exp(x²) is infinite in float64.
_OVERFLOWS = -27.0

#: From here on erfc is not computed from erf, and here it is 0 in float64.
_FROM_HERE, _TO_HERE = 1.25, 28.0

_ERFC_FROM_HERE = math.erfc(_FROM_HERE)

#: Of Halley's method, from `_nearly_inverse` on: each takes about the third power of an error that begins at 0.002.
_STEPS = 2


@replaces(aten.erfc.default)
def erfc(x: Tensor) -> Tensor:
    """erfc(x) → 1 - erf(x) in float64; above 1.25, where that cancels, exp(-x²) / x times a function close to 0.56."""
    return _erfc(x.double()).to(_dtype(x))


@replaces(aten.special_erfcx.default)
def erfcx(x: Tensor) -> Tensor:
    """erfcx(x) → exp(x²) * erfc(x); above 1.25, where one overflows and the other vanishes, their product at once."""
    wide = x.double()
    low, high = wide.clamp(_OVERFLOWS, _FROM_HERE), wide.clamp(min=_FROM_HERE)
    square, rest = _square(low)
    below = square.exp() * rest.exp() * (1 - low.erf())
    above = (_log_of_scaled(high) - 0.5625).exp() / high
    return torch.where(wide < _FROM_HERE, below, above).to(_dtype(x))


@replaces(aten.special_log_ndtr.default)
def log_ndtr(x: Tensor) -> Tensor:
    """log_ndtr(x) → log1p(-erfc(z) / 2) with z = x / sqrt(2); log(erfc(-z) / 2) for z below -1.25."""
    z = x.double() * math.sqrt(0.5)
    tail = (-z).clamp(min=_FROM_HERE)
    below = _log_of_scaled(tail) - 0.5625 - math.log(2) - tail.log() - tail * tail
    return torch.where(z < -_FROM_HERE, below, (-0.5 * _erfc(z)).log1p()).to(_dtype(x))


@replaces(aten.erfinv.default)
def erfinv(y: Tensor) -> Tensor:
    """erfinv(y) → Halley's method for erf(x) = y, and for log(erfc(x)) = log(1 - y) where erf is close to 1."""
    wide = y.double()
    return torch.copysign(_inverse(wide.abs(), 1 - wide.abs()), wide).to(_dtype(y))


@replaces(aten.special_ndtri.default)
def ndtri(p: Tensor) -> Tensor:
    """ndtri(p) → sqrt(2) * erfinv(2 p - 1), from 2 p itself where that is small."""
    wide = p.double()
    outside = 2 * torch.minimum(wide, 1 - wide)
    return torch.copysign(math.sqrt(2) * _inverse(1 - outside, outside), wide - 0.5).to(_dtype(p))


def _dtype(x: Tensor) -> torch.dtype:
    return x.dtype if is_float(x) else torch.get_default_dtype()


def _erfc(x: Tensor) -> Tensor:
    return torch.where(x < _FROM_HERE, 1 - x.erf(), _erfc_tail(x.clamp(_FROM_HERE, _TO_HERE)))


def _erfc_tail(x: Tensor) -> Tensor:
    """erfc on [1.25, 28] as fdlibm's s_erf.c computes it."""
    square, rest = _square(x)
    return (-square - 0.5625).exp() * (_log_of_scaled(x) - rest).exp() / x


def _square(x: Tensor) -> tuple[Tensor, Tensor]:
    """The square of x in two parts, the first of which is exact."""
    head = x.float().double()
    return head * head, (x - head) * (x + head)


def _log_of_scaled(x: Tensor) -> Tensor:
    """log(x * exp(x²) * erfc(x)) + 0.5625 from 1.25 on, by two rational functions of 1 / x²."""
    square = 1 / (x * x)
    near, far = (by_horner(square, above) / by_horner(square, below) for above, below in (_NEAR, _FAR))
    return torch.where(x < 1 / 0.35, near, far)


def _inverse(y: Tensor, outside: Tensor) -> Tensor:
    """x >= 0 with erf(x) = y and erfc(x) = outside = 1 - y: the lesser of both numbers has all digits."""
    nearly = _nearly_inverse(y, outside)
    x = nearly.clamp(max=1.5 * _FROM_HERE)
    for _ in range(_STEPS):
        step = (x.erf() - y) * (math.sqrt(math.pi) / 2) * (x * x).exp()
        x = x - step / (1 + x * step)
    tail, logarithm = nearly.clamp(min=_FROM_HERE), outside.log()
    for _ in range(_STEPS + 1):
        scaled = _log_of_scaled(tail) - 0.5625
        error = scaled - tail.log() - tail * tail - logarithm
        step = error * scaled.exp() * (math.sqrt(math.pi) / -2) / tail
        tail = tail - step / (1 - step / (2 * tail))
    x = torch.where(outside < _ERFC_FROM_HERE, tail, x)
    return torch.where(outside == 0, math.inf, x)


def _nearly_inverse(y: Tensor, outside: Tensor) -> Tensor:
    """S. Winitzki's formula, with 1 - y² as it is exact and the difference of roots as a quotient."""
    logarithm = torch.where(y < 0.5, (-y * y).log1p(), (outside * (2 - outside)).log())
    half = 2 / (math.pi * 0.147) + logarithm / 2
    square = -logarithm / 0.147
    return (square / ((half * half + square).sqrt() + half)).sqrt()


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
