"""Derivatives of lgamma in float64: sums of powers of 1 / x up to where the asymptotic series is exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.special_functions import by_horner
from pipeline.frontend.decompositions.replacements.table import aten, is_float, replaces

#: From here on the series' terms are below half an ulp from the last one on.
_LARGE = 10.0

#: The first even Bernoulli numbers, from the second on.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


@replaces(aten.digamma.default)
def digamma(x: Tensor) -> Tensor:
    """digamma(x) → in float64, of negative numbers by reflection: digamma(1 - x) - pi / tan(pi x), at poles NaN."""
    dtype = x.dtype if is_float(x) else torch.get_default_dtype()
    wide = x.double()
    mirrored = wide < 0
    value, below_large = _raised(torch.where(mirrored, 1 - wide, wide), lambda x: 1 / x)
    powers = 1 / (value * value)
    terms = [number / -(2 * k) for k, number in enumerate(_BERNOULLI, 1)]
    above = value.log() - 0.5 / value + by_horner(powers, terms) * powers - below_large
    angle = math.pi * (wide - wide.round())
    below = torch.where(wide == wide.round(), math.nan, above - math.pi * angle.cos() / angle.sin())
    return torch.where(mirrored, below, above).to(dtype)


@replaces(aten.polygamma.default)
def polygamma(n: int, x: Tensor) -> Any:
    """polygamma(0, x) → digamma(x); polygamma(1, x) → in float64, of what is below 1 / 2 by reflection."""
    if n > 1:
        return NotImplemented
    return _trigamma(x) if n else digamma(x)


def _trigamma(x: Tensor) -> Tensor:
    dtype = x.dtype if is_float(x) else torch.get_default_dtype()
    wide = x.double()
    mirrored = wide < 0.5
    value, below_large = _raised(torch.where(mirrored, 1 - wide, wide), lambda x: 1 / (x * x))
    powers = 1 / (value * value)
    above = (1 + 0.5 / value + by_horner(powers, _BERNOULLI) * powers) / value + below_large
    ratio = math.pi / (math.pi * (wide - wide.round())).sin()
    return torch.where(mirrored, ratio * ratio - above, above).to(dtype)


def _raised(x: Tensor, term: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """(x plus the least whole number that makes it large, the sum of the terms of x, x + 1, .. before that)."""
    total = torch.zeros_like(x)
    for _ in range(int(_LARGE)):
        small = x < _LARGE
        total = torch.where(small, total + term(x), total)
        x = torch.where(small, x + 1, x)
    return x, total
