"""The shapes of results that torch promises, compared with those that the lowered program computes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import sympy
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod

from pipeline import remarks
from pipeline.errors import CompileError
from pipeline.frontend.shapes.expressions import Expressions
from pipeline.frontend.shapes.held_casts import assert_sizes
from pipeline.mlir import arith, ir, terminator, walk
from pipeline.passes.rewriting import before, size_of

_SIZES = "pipeline.sizes"

_UNKNOWN = ir.ShapedType.get_dynamic_size()


def ask_for_sizes(function: ir.Operation) -> None:
    """Puts an op in front of the return that takes the sizes of the results, as computed."""
    end = terminator(function.regions[0].blocks[0])
    with before(end):
        sizes = [size_of(result, dim) for result in end.operands for dim in _unknown_dims(result)]
        ir.Operation.create(_SIZES, [], sizes)


def _unknown_dims(value: ir.Value) -> list[int]:
    if not isinstance(value.type, ir.RankedTensorType):
        return []
    shape = ir.RankedTensorType(value.type).shape
    return [dim for dim, size in enumerate(shape) if size == _UNKNOWN]


def check_results(function: ir.Operation, promised: Sequence[Sequence[Any] | None], expressions: Expressions) -> None:
    """Compares the sizes; those that are not proved to be as promised are checked as the program runs.

    Args:
        promised: the sizes of each result, None for a number.

    Raises:
        CompileError: a size is another one than promised whatever the arguments are.
    """
    (asked,) = walk(function, _SIZES)
    end = terminator(function.regions[0].blocks[0])
    wanted = [
        (number, dim, expressions.promised(sizes[dim]))
        for number, (result, sizes) in enumerate(zip(end.operands, promised, strict=True))
        if sizes is not None
        for dim in _unknown_dims(result)
    ]
    for (number, dim, promise), size in zip(wanted, list(asked.operands), strict=True):
        difference = expressions.number(size) - promise
        if expressions.is_never_zero(difference):
            computed = expressions.number(size)
            raise CompileError(f"result {number}: dimension {dim} is computed as {computed}, and is to be {promise}")
        if not expressions.is_zero(difference):
            _check(asked, size, promise, expressions)
    asked.erase()


def _check(place: ir.Operation, size: ir.Value, promise: sympy.Expr, expressions: Expressions) -> None:
    with before(place):
        wanted = _Computed(expressions).value(promise)
        if wanted is None:
            remarks.note("shapes", "missed", "func.return", f"a size of a result is not checked to be {promise}")
        else:
            assert_sizes(arith.CmpIOp(arith.CmpIPredicate.eq, size, wanted).result)


class _Computed:
    """Computes expressions in symbols from the sizes of the arguments, at the insertion point."""

    def __init__(self, expressions: Expressions):
        self._places: dict[sympy.Expr, tuple[ir.Value, int]] = {}
        for value, sizes in expressions.arguments.items():
            for dim, size in enumerate(sizes if isinstance(sizes, list) else [sizes]):
                self._places.setdefault(size, (value, dim))

    def value(self, expression: sympy.Expr) -> ir.Value | None:
        """The expression as an index; None if it has a symbol or an operation that the sizes do not give."""
        if expression.is_Integer:
            return arith.ConstantOp(ir.IndexType.get(), int(expression)).result
        if expression in self._places:
            value, dim = self._places[expression]
            if isinstance(value.type, ir.RankedTensorType):
                return size_of(value, dim)
            return arith.IndexCastOp(ir.IndexType.get(), value).result
        if expression.is_Symbol:
            return self._solved(expression)
        kind, terms = _terms(expression)
        operation = _OPERATIONS.get(kind)
        values = [self.value(term) for term in terms]
        if operation is None or any(value is None for value in values):
            return None
        return functools.reduce(lambda left, right: operation(left, right).result, values)

    def _solved(self, symbol: sympy.Expr) -> ir.Value | None:
        """The symbol s from a size like 2 * s + 1."""
        for known in self._places:
            if known.free_symbols == {symbol} and known.is_polynomial(symbol) and sympy.degree(known, symbol) == 1:
                factor, rest = (self.value(one) for one in sympy.Poly(known, symbol).all_coeffs())
                return arith.DivSIOp(arith.SubIOp(self.value(known), rest).result, factor).result
        return None


def _terms(expression: sympy.Expr) -> tuple[type, Sequence[sympy.Expr]]:
    """The kind of an expression and what it is made of; a power is the product of its factors."""
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        return sympy.Mul, [expression.base] * int(expression.exp)
    return expression.func, expression.args


_OPERATIONS: dict[type, Callable[[ir.Value, ir.Value], Any]] = {
    sympy.Add: arith.AddIOp,
    sympy.Mul: arith.MulIOp,
    FloorDiv: arith.FloorDivSIOp,
    Mod: arith.RemSIOp,
    Max: arith.MaxSIOp,
    Min: arith.MinSIOp,
}
