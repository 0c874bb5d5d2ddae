"""Ops on integers, indices and bools: arith's and math's, element by element, in two's complement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pipeline.debug.interpreter.frame import FailedCheck, Frame
from pipeline.debug.interpreter.handlers import HANDLERS, interprets
from pipeline.debug.interpreter.number_types import is_bool, unsigned
from pipeline.mlir import ir

Function = Callable[..., Any]


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x / y towards zero."""
    return (x - np.fmod(x, y)) // y


def _on_bits(function: Function) -> Function:
    """A function of numbers without sign."""
    return lambda *operands: np.asarray(function(*map(unsigned, operands)))


def _shift(function: Function) -> Function:
    """A shift; by as many bits as there are or more NumPy and MLIR know no result, here it is that of the most."""

    def shift(x: np.ndarray, by: np.ndarray) -> np.ndarray:
        return function(x, np.minimum(unsigned(by), 8 * x.dtype.itemsize - 1).astype(by.dtype))

    return shift


def _count_bits(x: np.ndarray) -> np.ndarray:
    return np.bitwise_count(unsigned(x))


def _leading_zeros(x: np.ndarray) -> np.ndarray:
    bits = unsigned(x).astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> np.uint64(shift))
    return 8 * x.dtype.itemsize - np.bitwise_count(bits).astype(np.int64)


def _trailing_zeros(x: np.ndarray) -> np.ndarray:
    return np.bitwise_count(unsigned(~x & (x - np.asarray(1, x.dtype))))


def _power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """base ** exponent; towards zero where the exponent is below it."""
    whole = np.power(base, np.maximum(exponent, 0))
    inverse = np.where(base == 1, 1, np.where(base == -1, np.where(exponent & 1, -1, 1), 0))
    return np.where(exponent < 0, inverse, whole)


FUNCTIONS: dict[str, Function] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": _quotient,
    "arith.divui": _on_bits(np.floor_divide),
    "arith.remsi": np.fmod,
    "arith.remui": _on_bits(np.remainder),
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": lambda x, y: -(-x // y),
    "arith.ceildivui": _on_bits(lambda x, y: x // y + (x % y != 0)),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _on_bits(np.maximum),
    "arith.minui": _on_bits(np.minimum),
    "arith.shli": _shift(np.left_shift),
    "arith.shrsi": _shift(np.right_shift),
    "arith.shrui": _shift(lambda x, by: np.right_shift(unsigned(x), unsigned(by))),
    "math.absi": np.abs,
    "math.ctlz": _leading_zeros,
    "math.ctpop": _count_bits,
    "math.cttz": _trailing_zeros,
    "math.ipowi": _power,
}

_DIVISIONS = frozenset(name for name in FUNCTIONS if "div" in name or "rem" in name)

#: By the predicate of `arith.cmpi`; from 6 on of numbers without sign.
_COMPARISONS: tuple[Function, ...] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    *map(_on_bits, (np.less, np.less_equal, np.greater, np.greater_equal)),
)


def as_integer(value: np.ndarray) -> np.ndarray:
    """Bools as integers of one bit are: true is -1."""
    return -value.astype(np.int8) if is_bool(value.dtype) else value


def _compute(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    if op.name in _DIVISIONS and not np.all(operands[1]):
        if operands[1].ndim == 0:
            raise FailedCheck(f"{op.name} by zero")
        operands = [operands[0], np.where(operands[1] == 0, np.ones_like(operands[1]), operands[1])]
    dtype = frame.precision.dtype(op.results[0].type)
    if is_bool(dtype):
        narrow = FUNCTIONS[op.name](*(value.astype(np.int8) for value in operands))
        return [np.asarray(narrow & 1).astype(bool)]
    return [np.asarray(FUNCTIONS[op.name](*operands)).astype(dtype, copy=False)]


HANDLERS.update(dict.fromkeys(FUNCTIONS, _compute))


@interprets("arith.cmpi")
def _compare(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    left, right = operands if predicate > 5 else map(as_integer, operands)
    return [np.asarray(_COMPARISONS[predicate](left, right))]


@interprets("arith.select")
def _select(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    condition, left, right = operands
    if condition.ndim == 0:
        return [left if condition else right]
    return [np.where(condition, left, right)]


@interprets("arith.mulsi_extended", "arith.mului_extended")
def _long_product(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    signed, dtype = op.name == "arith.mulsi_extended", operands[0].dtype
    bits = 8 * dtype.itemsize
    left, right = (np.asarray(value if signed else unsigned(value)).astype(object) for value in operands)
    product = np.asarray(left * right, dtype=object)
    return [_wrapped(product, dtype), _wrapped(np.asarray(product >> bits, dtype=object), dtype)]


@interprets("arith.addui_extended")
def _long_sum(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    total = np.asarray(operands[0] + operands[1])
    return [total, np.asarray(unsigned(total) < unsigned(operands[0]))]


def _wrapped(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers of Python as the integers that have the same last bits."""
    bits = 8 * dtype.itemsize
    return np.asarray(numbers & ((1 << bits) - 1), dtype=object).astype(f"u{dtype}").view(dtype)
