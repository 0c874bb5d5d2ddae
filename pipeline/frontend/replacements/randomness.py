"""Random numbers whose limits are tensors or sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.replacements.table import aten, replaces


@replaces(aten.randint.low)
def randint(low: Any, high: Any, size: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Tensor:
    """randint(a, b) → a + floor(rand() * (b - a)), where a limit is known only as the program runs."""
    if isinstance(low, int) and isinstance(high, int):
        return NotImplemented
    torch._check(high > low, lambda: "random_ expects 'from' to be less than 'to'")
    drawn = torch.floor(torch.rand(size, dtype=torch.float64) * (high - low)).to(torch.int64)
    return torch.minimum(drawn + low, torch.full([], high - 1, dtype=torch.int64)).to(dtype or torch.int64)


@replaces(aten.randint.default)
def randint_below(high: Any, size: Any, **kwargs: Any) -> Tensor:
    """randint(b) → randint(0, b), where b is known only as the program runs."""
    return NotImplemented if isinstance(high, int) else aten.randint.low(0, high, size, **kwargs)


@replaces(aten.randint_like.low_dtype)
def randint_like(x: Tensor, low: Any, high: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Tensor:
    """randint_like(x, a, b) → randint(a, b) of the shape of x."""
    return aten.randint.low(low, high, x.shape, dtype=torch.int64).to(dtype or x.dtype)


@replaces(aten.randint_like.default)
def randint_like_below(x: Tensor, high: Any, **kwargs: Any) -> Tensor:
    """randint_like(x, b) → randint_like(x, 0, b)."""
    return randint_like(x, 0, high, **kwargs)


@replaces(aten.normal.Tensor_Tensor, aten.normal.Tensor_float, aten.normal.float_Tensor)
def normal(mean: Any, std: Any = 1.0, *, generator: Any = None) -> Tensor:
    """normal(m, s) → m + s * randn()."""
    mean, std = (one if isinstance(one, Tensor) else torch.full([], float(one)) for one in (mean, std))
    shape = torch.broadcast_shapes(mean.shape, std.shape)
    dtype = mean.dtype if mean.dim() else std.dtype
    return mean + std * torch.randn(shape, dtype=dtype)
