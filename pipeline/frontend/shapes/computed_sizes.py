"""Expressions of torch's in symbols of sizes as code that computes them from the sizes of a function's arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import sympy
from torch.utils._sympy.functions import (
    CeilToInt,
    FloatTrueDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Max,
    Min,
    Mod,
    ToFloat,
    TruncToInt,
)

from pipeline.frontend.shapes.expressions import Expressions
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import size_of
from pipeline.mlir import arith, ir, math


class ComputedSizes:
    """Builds sizes at the insertion point: whole numbers as indices, all other numbers as f64."""

    def __init__(self, expressions: Expressions):
        self._places: dict[sympy.Expr, tuple[ir.Value, int]] = {}
        for value, sizes in expressions.arguments.items():
            for dim, size in enumerate(sizes if isinstance(sizes, list) else [sizes]):
                self._places.setdefault(size, (value, dim))

    def size(self, expression: sympy.Expr) -> ir.Value | None:
        """The expression as an index; None if it has a symbol or an operation that the sizes do not give."""
        if expression.is_Integer:
            return as_index(int(expression))
        if expression in self._places:
            value, dim = self._places[expression]
            if isinstance(value.type, ir.RankedTensorType):
                return size_of(value, dim)
            return arith.IndexCastOp(ir.IndexType.get(), value).result
        if expression.is_Symbol:
            return self._solved(expression)
        if expression.func in _ROUNDINGS:
            return self._rounded(expression)
        return self._computed(expression, _OF_SIZES, self.size)

    def _computed(
        self, expression: sympy.Expr, operations: dict[Any, Any], operand: Callable[[sympy.Expr], ir.Value | None]
    ) -> ir.Value | None:
        kind, terms = _terms(expression)
        operation = operations.get(kind)
        values = [operand(term) for term in terms]
        if operation is None or any(value is None for value in values):
            return None
        return functools.reduce(lambda left, right: operation(left, right).result, values)

    def _number(self, expression: sympy.Expr) -> ir.Value | None:
        """The expression as f64."""
        if expression.is_Number:
            return arith.ConstantOp(ir.F64Type.get(), float(expression)).result
        if expression.func in _OF_NUMBERS and not expression.is_integer:
            return self._computed(expression, _OF_NUMBERS, self._number)
        size = self.size(expression.args[0] if expression.func is ToFloat else expression)
        return None if size is None else _as_number(size)

    def _rounded(self, expression: sympy.Expr) -> ir.Value | None:
        number = self._number(expression.args[0])
        if number is None:
            return None
        integer = arith.FPToSIOp(ir.IntegerType.get_signless(64), _ROUNDINGS[expression.func](number).result).result
        return arith.IndexCastOp(ir.IndexType.get(), integer).result

    def _solved(self, symbol: sympy.Expr) -> ir.Value | None:
        """The symbol s from a size like 2 * s + 1."""
        for known in self._places:
            if known.free_symbols == {symbol} and known.is_polynomial(symbol) and sympy.degree(known, symbol) == 1:
                factor, rest = (self.size(coefficient) for coefficient in sympy.Poly(known, symbol).all_coeffs())
                return arith.DivSIOp(arith.SubIOp(self.size(known), rest).result, factor).result
        return None


def _as_number(size: ir.Value) -> ir.Value:
    integer = arith.IndexCastOp(ir.IntegerType.get_signless(64), size).result
    return arith.SIToFPOp(ir.F64Type.get(), integer).result


def _terms(expression: sympy.Expr) -> tuple[type, Sequence[sympy.Expr]]:
    """The kind of an expression and what it is made of; a power is the product of its factors."""
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        return sympy.Mul, [expression.base] * int(expression.exp)
    return expression.func, expression.args


_OF_SIZES: dict[type, Callable[[ir.Value, ir.Value], Any]] = {
    sympy.Add: arith.AddIOp,
    sympy.Mul: arith.MulIOp,
    FloorDiv: arith.FloorDivSIOp,
    Mod: arith.RemSIOp,
    Max: arith.MaxSIOp,
    Min: arith.MinSIOp,
}

_OF_NUMBERS: dict[type, Callable[[ir.Value, ir.Value], Any]] = {
    sympy.Add: arith.AddFOp,
    sympy.Mul: arith.MulFOp,
    IntTrueDiv: arith.DivFOp,
    FloatTrueDiv: arith.DivFOp,
    Max: arith.MaximumFOp,
    Min: arith.MinimumFOp,
}

_ROUNDINGS: dict[type, Callable[[ir.Value], Any]] = {
    TruncToInt: math.TruncOp,
    FloorToInt: math.FloorOp,
    CeilToInt: math.CeilOp,
}
