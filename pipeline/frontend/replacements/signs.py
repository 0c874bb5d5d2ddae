"""Signs, and the functions that turn on them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.replacements.table import aten, is_float, promoted, replaces


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
    """signbit(x) → x < 0 or 1/x < 0, which is how -0.0 shows; a NaN counts as positive."""
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0)) if is_float(x) else x < 0


@replaces(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(x: Tensor, sign: Any) -> Tensor:
    """copysign(x, s) → where(signbit(s), -abs(x), abs(x))."""
    x, sign = promoted(x, sign)
    if not is_float(x):
        x = x.to(torch.get_default_dtype())
    magnitude = x.abs()
    return torch.where(sign.signbit(), magnitude * -1, magnitude)
