"""Functions of floats, values for which they differ, and what counts as their result."""

from __future__ import annotations

import itertools
import math

import torch
import torch.nn.functional as F


def _named(library, *names):
    return {name: getattr(library, name) for name in names}


FUNCTIONS = {
    **_named(torch, "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "deg2rad", "erf", "exp", "exp2", "expm1"),
    **_named(torch, "floor", "frac", "log", "log10", "log1p", "log2", "nan_to_num", "neg", "reciprocal", "relu"),
    **_named(torch, "round", "rsqrt", "sgn", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
    **_named(F, "celu", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "relu6", "selu"),
    **_named(F, "silu", "softplus", "softshrink", "softsign"),
    "round to a tenth": lambda x: x.round(decimals=1),
    "round to hundreds": lambda x: x.round(decimals=-2),
    "round to thousandths": lambda x: x.round(decimals=3),
    "square": lambda x: x**2,
    "clamp": lambda x: x.clamp(-1.1, 2.3),
    "remainder": lambda x: x.remainder(3),
    "fmod": lambda x: x.fmod(3),
    "floor of a quotient": lambda x: x // 3,
    "times a number": lambda x: x * 0.1,
    "nothing times": lambda x: x * 0.0,
    "minus itself": lambda x: x - x,
    "far and back": lambda x: (x + 1024) - 1024,
    "logaddexp2": lambda x: torch.logaddexp2(x, torch.zeros_like(x)),
    "heaviside": lambda x: torch.heaviside(x, torch.ones_like(x)),
    "threshold": lambda x: torch.where(x < 0.5, 0.0, x),
}

PREDICATES = {
    **_named(torch, "isfinite", "isinf", "isnan", "isneginf", "isposinf", "logical_not", "signbit"),
    "equal to itself": lambda x: x == x,
    "unequal to itself": lambda x: x != x,
    "sign of nothing": lambda x: (x * 0.0).nan_to_num().signbit() ^ (x * -0.0).nan_to_num().signbit(),
    "not less": lambda x: ~(x < 0),
    "not more": lambda x: torch.logical_not(x > 0),
    "at least": lambda x: x >= 0,
}

#: Of two operands.
PAIRS = {
    **_named(torch, "add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "fmod", "remainder"),
    **_named(torch, "eq", "ne", "lt", "le", "gt", "ge", "atan2", "copysign", "floor_divide", "nextafter"),
    "clamp": lambda x, y: torch.clamp(x, y, y + 1),
    "where less": lambda x, y: torch.where(x < y, x, y),
    "where not less": lambda x, y: torch.where(~(x < y), x, y),
    "lost in a sum": lambda x, y: (x - ((x + y) - y), (x - y) + y, y - (x + y), (x + y) + (1 - x)),
}


def every_float(dtype: torch.dtype) -> torch.Tensor:
    """All of 16 bits; as many of each kind in wider types."""
    words = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)
    if dtype.itemsize == 2:
        return words.view(dtype)
    return torch.cat([words.view(torch.float16).to(dtype), words.view(torch.bfloat16).to(dtype)])


def special_pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Each special value with each."""
    values = [math.nan, 0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 3.0, math.inf, -math.inf, 1e-3, 1e4, -7.25]
    left, right = zip(*itertools.product(values, values), strict=True)
    return torch.tensor(left, dtype=dtype), torch.tensor(right, dtype=dtype)


def places_off(result: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, units: float) -> torch.Tensor:
    """Where a result is not eager's, farther from the exact one than eager's, and by more than some units."""
    limits, (result, eager) = torch.finfo(eager.dtype), (result.double(), eager.double())
    exact = exact.to(torch.float64)
    same = (result == eager) | (result.isnan() & eager.isnan())
    error, allowed = (result - exact).abs(), exact.abs().clamp(min=limits.tiny) * limits.eps * units
    near = (error <= allowed) | (error <= (eager - exact).abs()) | ((result == exact) & exact.isinf())
    overflows = result.isinf() & (exact.abs() >= limits.max)
    return ~(same | near | overflows)
