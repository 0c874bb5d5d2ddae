"""Which functions there are, by the name of the op and the type of the elements."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.mlir import ir
from pipeline.passes.legalization.math import (
    erf_f64,
    exponential,
    hyperbolic_f64,
    inverse_f64,
    logarithm,
    sigmoidal,
    trigonometry,
    trigonometry_f64,
)

#: Builds the value of a function, or none where it is left to libm.
Function = Callable[..., ir.Value | None]

_SINGLE: dict[str, Function] = {
    "math.exp": exponential.exp,
    "math.exp2": exponential.exp2,
    "math.expm1": exponential.expm1,
    "math.sinh": exponential.sinh,
    "math.cosh": exponential.cosh,
    "math.powf": exponential.powf,
    "math.log": logarithm.log,
    "math.log2": logarithm.log2,
    "math.log10": logarithm.log10,
    "math.log1p": logarithm.log1p,
    "math.asinh": logarithm.asinh,
    "math.acosh": logarithm.acosh,
    "math.atanh": logarithm.atanh,
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

_DOUBLE: dict[str, Function] = {
    "math.exp": exponential.exp,
    "math.exp2": exponential.exp2,
    "math.expm1": hyperbolic_f64.expm1,
    "math.sinh": hyperbolic_f64.sinh,
    "math.cosh": hyperbolic_f64.cosh,
    "math.tanh": hyperbolic_f64.tanh,
    "math.powf": exponential.powf_double,
    "math.log": logarithm.log,
    "math.log2": logarithm.log2_double,
    "math.log10": logarithm.log10_double,
    "math.log1p": logarithm.log1p,
    "math.asinh": hyperbolic_f64.asinh,
    "math.acosh": hyperbolic_f64.acosh,
    "math.atanh": hyperbolic_f64.atanh,
    "math.sin": trigonometry_f64.sin,
    "math.cos": trigonometry_f64.cos,
    "math.tan": trigonometry_f64.tan,
    "math.asin": inverse_f64.asin,
    "math.acos": inverse_f64.acos,
    "math.atan": inverse_f64.atan,
    "math.atan2": inverse_f64.atan2,
    "math.erf": erf_f64.erf,
}

FUNCTIONS = {(name, "f32"): function for name, function in _SINGLE.items()}
FUNCTIONS |= {(name, "f64"): function for name, function in _DOUBLE.items()}

#: Ops for which processors have an instruction or a few, or that other passes expand.
HAVE_INSTRUCTIONS = frozenset(
    f"math.{name}"
    for name in ("absf", "ceil", "copysign", "floor", "fma", "round", "roundeven", "rsqrt", "sqrt", "trunc")
) | {"math.isfinite", "math.isinf", "math.isnan", "math.isnormal"}
