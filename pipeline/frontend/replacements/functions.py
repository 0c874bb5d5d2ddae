"""Functions of one or two numbers."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.replacements.table import aten, in_float32, is_float, promoted, replaces


@replaces(aten.hardtanh.default)
def hardtanh(x: Tensor, low: Any = -1, high: Any = 1) -> Tensor:
    """hardtanh(x, low, high) → clamp(x, low, high): torch-mlir's makes a number of NaN."""
    return x.clamp(low, high)


@replaces(aten.gelu.default)
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """gelu(x, tanh) → x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x³))), which torch-mlir's is not."""
    return NotImplemented if approximate == "none" else in_float32(_gelu_tanh)(x)


def _gelu_tanh(x: Tensor) -> Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + inner.tanh())


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
    """erfc(x) → 1 - erf(x) in float64."""
    dtype = x.dtype if is_float(x) else torch.get_default_dtype()
    return (1 - x.double().erf()).to(dtype)
