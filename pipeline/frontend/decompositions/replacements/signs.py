"""Signs, and the functions that turn on them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, is_float, promoted, replaces


@replaces(aten.neg.default)
def neg(x: Tensor) -> Tensor:
    """neg(x) → x * -1 for integers, which torch-mlir negates in floating point."""
    return NotImplemented if is_float(x) else x * -1


@replaces(aten.abs.default)
def absolute(x: Tensor) -> Tensor:
    """abs(x) → x for unsigned integers."""
    return NotImplemented if x.dtype.is_signed else x.clone()


@replaces(aten.signbit.default)
def signbit(x: Tensor) -> Tensor:
    """signbit(x) → the bits of x as an integer < 0, so that -0.0 and NaN have their own signs."""
    return _bits(x) < 0 if is_float(x) else x < 0


@replaces(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(x: Tensor, sign: Any) -> Tensor:
    """copysign(x, s) → the bits of x but the first, which is that of s."""
    if not is_float(x, sign):
        floats = torch.get_default_dtype()
        x, sign = x.to(floats), sign.to(floats) if isinstance(sign, Tensor) else sign
    x, sign = promoted(x, sign)
    first = torch.iinfo(_INTEGERS[x.dtype.itemsize]).min
    return ((_bits(x) & ~first) | (_bits(sign) & first)).view(x.dtype)


@replaces(aten.angle.default)
def angle(x: Tensor) -> Tensor:
    """angle(x) of a real number → pi below zero, else 0; NaN for NaN."""
    floats = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    below, above = (torch.full((), number, dtype=floats.dtype, device=x.device) for number in (math.pi, 0.0))
    return torch.where(floats.isnan(), floats, torch.where(floats < 0, below, above))


@replaces(aten.nextafter.default)
def nextafter(x: Tensor, to: Tensor) -> Tensor:
    """nextafter(x, y) → x for x = y; else x's bits as an integer, which is 1 more towards what is further from zero."""
    x, to = promoted(x, to)
    away = (to > x) == (x > 0)
    steps = _bits(x) + torch.where(away, 1, -1).to(_INTEGERS[x.dtype.itemsize])
    smallest = copysign(torch.ones_like(_bits(x)).view(x.dtype), to)
    moved = torch.where(x == 0, smallest, steps.view(x.dtype))
    return torch.where(x.isnan(), x, torch.where((x == to) | to.isnan(), to, moved))


#: The integers that have as many bytes.
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def _bits(x: Tensor) -> Tensor:
    return x.view(_INTEGERS[x.dtype.itemsize])
