"""Ops on floats: arith's and math's, element by element, rounded to what the IR says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pipeline.debug.interpreter.frame import Frame
from pipeline.debug.interpreter.handlers import HANDLERS
from pipeline.debug.interpreter.number_types import computed
from pipeline.mlir import ir

Function = Callable[..., Any]


def _round_half_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), np.copysign(whole, x))


def _by_element(function: Callable[[float], float]) -> Function:
    """A function of Python's numbers on arrays; NumPy has none of its kind."""
    each = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(each(x), dtype=np.float64)


def _maximum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The larger one; NaN if one is, and 0 rather than -0."""
    return np.where((x == 0) & (y == 0), x + y, np.maximum(x, y))


def _minimum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The smaller one; NaN if one is, and -0 rather than 0."""
    return -_maximum(-x, -y)


FUNCTIONS: dict[str, Function] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.negf": np.negative,
    "arith.maximumf": _maximum,
    "arith.minimumf": _minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "math.absf": np.abs,
    "math.acos": np.arccos,
    "math.acosh": np.arccosh,
    "math.asin": np.arcsin,
    "math.asinh": np.arcsinh,
    "math.atan": np.arctan,
    "math.atan2": np.arctan2,
    "math.atanh": np.arctanh,
    "math.cbrt": np.cbrt,
    "math.ceil": np.ceil,
    "math.clampf": lambda x, low, high: np.fmin(np.fmax(x, low), high),
    "math.copysign": np.copysign,
    "math.cos": np.cos,
    "math.cosh": np.cosh,
    "math.erf": _by_element(math.erf),
    "math.erfc": _by_element(math.erfc),
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": np.expm1,
    "math.floor": np.floor,
    "math.fma": lambda x, y, z: x * y + z,
    "math.fpowi": np.power,
    "math.log": np.log,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.log2": np.log2,
    "math.powf": np.power,
    "math.round": _round_half_away,
    "math.roundeven": np.rint,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.sin": np.sin,
    "math.sinh": np.sinh,
    "math.sqrt": np.sqrt,
    "math.tan": np.tan,
    "math.tanh": np.tanh,
    "math.trunc": np.trunc,
}

_TESTS: dict[str, Function] = {
    "math.isfinite": np.isfinite,
    "math.isinf": np.isinf,
    "math.isnan": np.isnan,
    "math.isnormal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
}

#: What `arith.cmpf` asks, by its predicate: that neither is NaN (or, from 8 on, that one is) and how they compare.
_ORDERED: tuple[Function, ...] = (
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    np.not_equal,
)


def _operands(operands: list[Any]) -> list[Any]:
    return [value.astype(computed(value.dtype), copy=False) for value in operands]


def _compute(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    result = FUNCTIONS[op.name](*_operands(operands))
    return [np.asarray(result).astype(frame.precision.dtype(op.results[0].type), copy=False)]


def _test(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [np.asarray(_TESTS[op.name](*_operands(operands)))]


def _compare(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    left, right = _operands(operands)
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    unordered = np.isnan(left) | np.isnan(right)
    if predicate in (0, 15):
        return [np.full(unordered.shape, predicate == 15)]
    if predicate in (7, 14):
        return [unordered if predicate == 14 else ~unordered]
    if predicate < 7:
        return [np.asarray(_ORDERED[predicate - 1](left, right) & ~unordered)]
    return [np.asarray(_ORDERED[predicate - 8](left, right) | unordered)]


HANDLERS.update(dict.fromkeys(FUNCTIONS, _compute))
HANDLERS.update(dict.fromkeys(_TESTS, _test))
HANDLERS["arith.cmpf"] = _compare
