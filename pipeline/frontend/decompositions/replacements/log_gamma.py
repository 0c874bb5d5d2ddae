"""lgamma in float64, by series whose coefficients are known in closed form."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.special_functions import by_horner
from pipeline.frontend.decompositions.replacements.table import aten, is_float, replaces

_EULER = 0.577215664901532860606512090082402431

#: Terms of the series about 2, whose ratio is 1 / 4 at the end of its range.
_TERMS = 28

#: From where on Stirling's series is exact.
_LARGE = 10.0


def _zeta_minus_one(k: int) -> float:
    """The sum of n ** -k over n from 2, by Euler's and Maclaurin's formula from 100 on."""
    first = 100.0
    rising = [math.prod(range(k, k + count)) for count in (1, 3, 5)]
    bernoulli = (rise * scale for rise, scale in zip(rising, (1 / 12, -1 / 720, 1 / 30240), strict=True))
    corrections = (factor * first ** -(k + 2 * place + 1) for place, factor in enumerate(bernoulli))
    whole = (n**-k for n in range(2, int(first)))
    return math.fsum([*whole, first ** (1 - k) / (k - 1), first**-k / 2, *corrections])


#: Of lgamma(2 + s) by powers of s from 1.
_ABOUT_TWO = (1 - _EULER, *((-1) ** k * _zeta_minus_one(k) / k for k in range(2, _TERMS)))

#: Stirling's series by odd powers of 1 / x: B(2 k) / (2 k (2 k - 1)).
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


@replaces(aten.lgamma.default)
def lgamma(x: Tensor) -> Tensor:
    """lgamma(x) → in float64, of negative numbers by reflection: log(pi / |x sin(pi x)|) - lgamma(-x)."""
    dtype = x.dtype if is_float(x) else torch.get_default_dtype()
    wide = x.double()
    size = wide.abs()
    above = torch.where(size < _LARGE, _below_large(size.clamp(max=_LARGE)), _stirling(size.clamp(min=_LARGE)))
    sine = (math.pi * (wide - wide.round())).sin().abs()
    result = torch.where(wide < 0, (math.pi / (sine * size)).log() - above, above)
    return torch.where(size == math.inf, math.inf, result).to(dtype)


def _below_large(x: Tensor) -> Tensor:
    """lgamma on [0, 10]: the series about 2 of what is left when factors are taken out, or one or two put in.

    Near 0, 1 and 2 what goes into the series is exact.
    """
    nearest = (x + 0.5).floor()
    factors = torch.where(nearest == 0, x * (1 + x), torch.where(nearest == 1, x, 1.0))
    for step in range(1, int(_LARGE) - 1):
        factors = torch.where(nearest >= step + 2, factors * (x - step), factors)
    rest = x - nearest
    logarithm = torch.where(nearest < 2, -factors.log(), factors.log())
    return by_horner(rest, _ABOUT_TWO) * rest + logarithm


def _stirling(x: Tensor) -> Tensor:
    inverse = 1 / x
    series = by_horner(inverse * inverse, _STIRLING) * inverse
    return (x - 0.5) * (x.log() - 1) + (0.5 * math.log(2 * math.pi) - 0.5 + series)
