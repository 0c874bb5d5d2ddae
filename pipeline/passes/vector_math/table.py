"""Which functions there are, by the name of the op and the type of the elements."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.mlir import ir
from pipeline.passes.vector_math import exponentials, logarithms, sigmoidal, trigonometry, wide_trigonometry

_SINGLE: dict[str, Callable[..., ir.Value]] = {
    "math.exp": exponentials.exp,
    "math.exp2": exponentials.exp2,
    "math.expm1": exponentials.expm1,
    "math.sinh": exponentials.sinh,
    "math.cosh": exponentials.cosh,
    "math.powf": exponentials.powf,
    "math.log": logarithms.log,
    "math.log2": logarithms.log2,
    "math.log10": logarithms.log10,
    "math.log1p": logarithms.log1p,
    "math.asinh": logarithms.asinh,
    "math.acosh": logarithms.acosh,
    "math.atanh": logarithms.atanh,
    "math.sin": trigonometry.sin,
    "math.cos": trigonometry.cos,
    "math.tan": trigonometry.tan,
    "math.asin": trigonometry.asin,
    "math.acos": trigonometry.acos,
    "math.atan": trigonometry.atan,
    "math.atan2": trigonometry.atan2,
    "math.tanh": sigmoidal.tanh,
    "math.erf": sigmoidal.erf,
}

_DOUBLE: dict[str, Callable[..., ir.Value]] = {
    "math.exp": exponentials.exp,
    "math.log": logarithms.log,
    "math.log1p": logarithms.log1p,
    "math.sin": wide_trigonometry.sin,
    "math.cos": wide_trigonometry.cos,
    "math.tan": wide_trigonometry.tan,
}

FUNCTIONS = {(name, "f32"): function for name, function in _SINGLE.items()}
FUNCTIONS |= {(name, "f64"): function for name, function in _DOUBLE.items()}

#: Ops for which processors have an instruction or a few, or that other passes expand.
HAVE_INSTRUCTIONS = frozenset(
    f"math.{name}"
    for name in ("absf", "ceil", "copysign", "floor", "fma", "round", "roundeven", "rsqrt", "sqrt", "trunc")
) | {"math.isfinite", "math.isinf", "math.isnan", "math.isnormal"}
