"""What Python and torch compute with numbers, each by an op on tensors of no dimensions."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.sym_node import METHOD_TO_OPERATOR

from pipeline.frontend.numbers.boxes import Boxes, dtype_of, value_of

aten = torch.ops.aten

_F64, _I64, _BOOL = torch.float64, torch.int64, torch.bool

#: How a function of numbers is computed: from the boxes, its node's arguments, and the dtype of its result.
Lowering = Callable[[Boxes, tuple[Any, ...], torch.dtype], fx.Node]


def _common(operands: tuple[Any, ...]) -> torch.dtype:
    """The dtype in which Python computes with numbers of these."""
    dtypes = {dtype_of(operand) for operand in operands}
    if _F64 in dtypes:
        return _F64
    return _I64 if _I64 in dtypes else _BOOL


def _by(op: Any) -> Lowering:
    """op(a, b), in the dtype of the result."""
    return lambda boxes, args, dtype: boxes.call(op, dtype, *(boxes.box(arg, dtype) for arg in args))


def _comparison(op: Any) -> Lowering:
    """op(a, b) -> bool, in the dtype that the operands have in common."""

    def lower(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
        wide = _common(args)
        wide = _I64 if wide == _BOOL else wide
        return boxes.call(op, _BOOL, *(boxes.box(arg, wide) for arg in args))

    return lower


def _of_float(op: Any) -> Lowering:
    """op(float(a)), a float."""
    return lambda boxes, args, dtype: boxes.cast(boxes.call(op, _F64, boxes.box(args[0], _F64)), dtype)


def _bits(logical: Any, bitwise: Any) -> Lowering:
    """One op for flags, another for the bits of whole numbers."""
    return lambda boxes, args, dtype: _by(logical if dtype == _BOOL else bitwise)(boxes, args, dtype)


def _cast(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
    return boxes.box(args[0], dtype)


def _not(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
    return boxes.call(aten.logical_not.default, _BOOL, boxes.box(args[0], _BOOL))


def _choose(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
    condition, *values = args
    return boxes.call(aten.where.self, dtype, boxes.box(condition, _BOOL), *(boxes.box(v, dtype) for v in values))


def _quotient(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
    """a / b, an error for b = 0."""
    divisor = boxes.box(args[1], _F64)
    if isinstance(args[1], fx.Node):
        boxes.check(boxes.call(aten.ne.Scalar, _BOOL, divisor, 0.0), "division by zero")
    return boxes.call(aten.div.Tensor, _F64, boxes.box(args[0], _F64), divisor)


def _remainder(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
    return boxes.call(aten.remainder.Tensor, dtype, *(boxes.box(arg, dtype) for arg in args))


def _power(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
    """a ** b; an exponent that is known, and small and whole, is so many factors."""
    base, exponent = args
    if isinstance(exponent, int) and 0 < exponent <= 8:
        factor = result = boxes.box(base, dtype)
        for _ in range(exponent - 1):
            result = boxes.call(aten.mul.Tensor, dtype, result, factor)
        return result
    power = boxes.call(aten.pow.Tensor_Tensor, _F64, boxes.box(base, _F64), boxes.box(exponent, _F64))
    return boxes.cast(boxes.call(aten.round.default, _F64, power) if dtype == _I64 else power, dtype)


def _round(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
    """round(a, digits): half to even."""
    digits = args[1] if len(args) > 1 and args[1] is not None else 0
    scaled = boxes.box(args[0], _F64)
    if digits:
        scaled = boxes.call(aten.mul.Tensor, _F64, scaled, boxes.box(10.0**digits, _F64))
    rounded = boxes.call(aten.round.default, _F64, scaled)
    if digits:
        rounded = boxes.call(aten.div.Tensor, _F64, rounded, boxes.box(10.0**digits, _F64))
    return boxes.cast(rounded, dtype)


def _is_whole(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
    number = boxes.box(args[0], _F64)
    return boxes.call(aten.eq.Tensor, _BOOL, number, boxes.call(aten.trunc.default, _F64, number))


def _sum(boxes: Boxes, args: tuple[Any, ...], dtype: torch.dtype) -> fx.Node:
    first, *others = (boxes.box(arg, dtype) for arg in args[0])
    for other in others:
        first = boxes.call(aten.add.Tensor, dtype, first, other)
    return first


#: Every function of numbers that torch puts into graphs: METHOD_TO_OPERATOR, and the functions of torch/__init__.py.
FUNCTIONS: dict[Any, Lowering] = {
    operator.add: _by(aten.add.Tensor),
    operator.sub: _by(aten.sub.Tensor),
    operator.mul: _by(aten.mul.Tensor),
    operator.truediv: _quotient,
    operator.mod: _remainder,
    operator.pow: _power,
    operator.neg: _by(aten.neg.default),
    operator.pos: _cast,
    operator.abs: _by(aten.abs.default),
    builtins.abs: _by(aten.abs.default),
    operator.eq: _comparison(aten.eq.Tensor),
    operator.ne: _comparison(aten.ne.Tensor),
    operator.lt: _comparison(aten.lt.Tensor),
    operator.le: _comparison(aten.le.Tensor),
    operator.gt: _comparison(aten.gt.Tensor),
    operator.ge: _comparison(aten.ge.Tensor),
    operator.and_: _bits(aten.logical_and.default, aten.bitwise_and.Tensor),
    operator.or_: _bits(aten.logical_or.default, aten.bitwise_or.Tensor),
    operator.xor: _bits(aten.logical_xor.default, aten.bitwise_xor.Tensor),
    operator.lshift: _by(aten.bitwise_left_shift.Tensor),
    operator.rshift: _by(aten.bitwise_right_shift.Tensor),
    operator.not_: _not,
    torch.sym_not: _not,
    torch.sym_ite: _choose,
    torch.sym_max: _by(aten.maximum.default),
    torch.sym_min: _by(aten.minimum.default),
    torch.sym_float: _cast,
    torch.sym_int: _of_float(aten.trunc.default),
    torch.sym_sum: _sum,
    math.trunc: _of_float(aten.trunc.default),
    math.ceil: _of_float(aten.ceil.default),
    math.floor: _of_float(aten.floor.default),
    builtins.round: _round,
    METHOD_TO_OPERATOR["is_integer"]: _is_whole,
    **{
        getattr(torch, f"_sym_{name}"): _of_float(getattr(aten, name).default)
        for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")
    },
}


def stays_number(node: fx.Node) -> bool:
    """Whether a node computes with whole numbers alone what torch-mlir has scalar ops for."""
    if node.target not in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.neg):
        return False
    return all(type(value_of(operand)) in (int, torch.SymInt) for operand in (node, *node.args))
