"""Integers of a lowered program as expressions in the symbols of its arguments' sizes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from pipeline.mlir import arith, constant_integer, defining_op, ir, terminator

#: A tensor.cast to known sizes that nothing may fold, since it is not judged yet.
HELD = "pipeline.held_cast"

#: The sizes of an argument of the program, or the one expression that an integer argument is.
Argument = Sequence[Any] | Any

_PASSING = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")


class Expressions:
    """Reads values of a function whose arguments' sizes are given; what it cannot read is a symbol of its own.

    Attributes:
        arguments: the sizes of each argument of the function, or the number that it is.
        raised: the least values of symbols, by name, where a proof wants greater ones than were given.
    """

    def __init__(self, function: ir.Operation, arguments: Sequence[Argument], ranges: Mapping[str, tuple[int, int]]):
        """`arguments` are torch's expressions; `ranges` the least and the greatest size of each symbol by its name."""
        block = function.regions[0].blocks[0]
        self._symbols: dict[str, sympy.Symbol] = {}
        self._bounds: dict[sympy.Symbol, ValueRanges] = {}
        self._ranges = ranges
        given = zip(block.arguments, arguments, strict=False)  # a seed may come behind them
        self.arguments = {value: self.promised(argument) for value, argument in given}
        self._known: dict[Any, sympy.Expr] = {}
        self._unknown = itertools.count()
        self.raised: dict[str, int] = {}

    def promised(self, expression: Any) -> Any:
        """torch's expressions in symbols that may be 0 and 1, as torch's may not."""
        if isinstance(expression, (list, tuple)):
            return [self.promised(part) for part in expression]
        expression = sympy.sympify(expression)
        return expression.xreplace({symbol: self._symbol(symbol.name) for symbol in expression.free_symbols})

    def _symbol(self, name: str) -> sympy.Symbol:
        if name not in self._symbols:
            low, high = self._ranges.get(name, (0, 2**63 - 1))
            self._symbols[name] = self._bounded(name, low, high)
        return self._symbols[name]

    def _bounded(self, name: str, low: int, high: int) -> sympy.Symbol:
        symbol = sympy.Symbol(name, integer=True, **({"nonnegative": True} if low >= 0 else {}))
        self._bounds[symbol] = ValueRanges(low, high)
        return symbol

    def proves(self, value: ir.Value, number: int) -> bool:
        """Whether an integer has a value, perhaps for sizes from 1 or 2 on alone: then those are `raised`.

        torch.export itself takes no symbolic size for 0 or 1, so that what it says of them need not hold.
        """
        before = dict(self._bounds)
        for least in (0, 1, 2):
            expression = self.number(value)
            raised = [symbol for symbol in self._sizes_in(expression) if self._bounds[symbol].lower < least]
            for symbol in raised:
                self._bounds[symbol] = ValueRanges(least, max(least, before[symbol].upper))
            self._known.clear()
            if self.is_zero(self.number(value) - number):
                self.raised.update({symbol.name: least for symbol in raised})
                return True
        self._bounds.update(before)
        self._known.clear()
        return False

    def _sizes_in(self, expression: sympy.Expr) -> list[sympy.Symbol]:
        return [symbol for symbol in expression.free_symbols if symbol in self._symbols.values()]

    def is_zero(self, expression: sympy.Expr) -> bool:
        """Whether an expression is 0 whatever the sizes are."""
        expression = sympy.expand(expression)
        if expression == 0:
            return True
        bounds = self._range(expression)
        return bool(bounds.lower == 0 and bounds.upper == 0)

    def is_never_zero(self, expression: sympy.Expr) -> bool:
        """Whether an expression is not 0 whatever the sizes are."""
        bounds = self._range(sympy.expand(expression))
        return bool(bounds.lower > 0 or bounds.upper < 0)

    def _range(self, expression: sympy.Expr) -> ValueRanges:
        return bound_sympy(expression, self._bounds)

    def size(self, tensor: ir.Value, dim: int) -> sympy.Expr:
        """The size of one dim of a tensor."""
        size = ir.RankedTensorType(tensor.type).shape[dim]
        if size != ir.ShapedType.get_dynamic_size():
            return sympy.Integer(size)
        if tensor in self.arguments:
            return self.arguments[tensor][dim]
        return self._remembered((tensor, dim), lambda: self._size_of_result(tensor, dim))

    def number(self, value: ir.Value) -> sympy.Expr:
        """An integer or an index."""
        constant = constant_integer(value)
        if constant is not None:
            return sympy.Integer(constant)
        if value in self.arguments:
            return self.arguments[value]
        return self._remembered(value, lambda: self._result(value))

    def _remembered(self, key: Any, compute: Callable[[], sympy.Expr | None]) -> sympy.Expr:
        if key not in self._known:
            found = compute()
            is_size = isinstance(key, tuple)
            name = f"unknown{next(self._unknown)}"
            self._known[key] = self._bounded(name, 0 if is_size else -(2**63), 2**63 - 1) if found is None else found
        return self._known[key]

    def _size_of_result(self, tensor: ir.Value, dim: int) -> sympy.Expr | None:
        producer = defining_op(tensor)
        if producer is None:
            return None
        if producer.name == HELD:  # takes the sizes of what it casts
            return self.number(producer.operands[1 + dim])
        if producer.name == "tensor.cast":
            return self.size(producer.operands[0], dim)
        number = ir.OpResult(tensor).result_number
        if producer.name == "scf.if":
            return self._size_of_branches(producer, number, dim)
        if producer.name.startswith("tm_tensor."):  # computes its last operands anew
            return self.size(list(producer.operands)[number - len(producer.results)], dim)
        return None

    def _size_of_branches(self, branch: ir.Operation, number: int, dim: int) -> sympy.Expr | None:
        sizes = [self.size(terminator(region.blocks[0]).operands[number], dim) for region in branch.regions]
        return sizes[0] if sizes[0] == sizes[1] else None

    def _result(self, value: ir.Value) -> sympy.Expr | None:
        op = defining_op(value)
        if op is None:
            return None
        if op.name in _PASSING:
            return self.number(op.operands[0])
        if op.name == "tensor.dim":
            dim = constant_integer(op.operands[1])
            return None if dim is None else self.size(op.operands[0], dim)
        if op.name == "affine.apply":
            return self._affine(op)
        if op.name == "arith.select":
            return self._select(*op.operands)
        operation = _OPERATIONS.get(op.name)
        return None if operation is None else operation(self, *map(self.number, op.operands))

    def _affine(self, op: ir.Operation) -> sympy.Expr:
        indexing = ir.AffineMapAttr(op.attributes["map"]).value
        operands = list(map(self.number, op.operands))
        return self._affine_expression(indexing.results[0], operands[: indexing.n_dims], operands[indexing.n_dims :])

    def _affine_expression(self, expression: ir.AffineExpr, dims: list[Any], symbols: list[Any]) -> sympy.Expr:
        if isinstance(expression, ir.AffineConstantExpr):
            return sympy.Integer(expression.value)
        if isinstance(expression, ir.AffineDimExpr):
            return dims[expression.position]
        if isinstance(expression, ir.AffineSymbolExpr):
            return symbols[expression.position]
        binary = ir.AffineBinaryExpr(expression)
        left, right = (self._affine_expression(side, dims, symbols) for side in (binary.lhs, binary.rhs))
        return next(function for kind, function in _AFFINE.items() if isinstance(expression, kind))(left, right)

    def _select(self, condition: ir.Value, then: ir.Value, otherwise: ir.Value) -> sympy.Expr | None:
        truth = self.truth(condition)
        if truth is not None:
            return self.number(then if truth else otherwise)
        same = self.number(then)
        return same if same == self.number(otherwise) else None

    def truth(self, condition: ir.Value) -> bool | None:
        """Whether a comparison of integers holds, or does not, whatever the sizes are; None if that depends on them."""
        compare = defining_op(condition)
        if compare is None or compare.name != "arith.cmpi":
            return None
        predicate = arith.CmpIPredicate(ir.IntegerAttr(compare.attributes["predicate"]).value)
        bounds = self._range(sympy.expand(self.number(compare.operands[0]) - self.number(compare.operands[1])))
        holds = {name: bool(test(bounds)) for name, test in _COMPARISONS.items()}
        opposites = {"slt": "sge", "sle": "sgt", "sgt": "sle", "sge": "slt", "eq": "ne", "ne": "eq"}
        if predicate.name not in opposites:
            return None
        return True if holds[predicate.name] else False if holds[opposites[predicate.name]] else None

    def _greatest(self, left: sympy.Expr, right: sympy.Expr) -> sympy.Expr:
        difference = self._range(sympy.expand(left - right))
        return left if difference.lower >= 0 else right if difference.upper <= 0 else Max(left, right)

    def _least(self, left: sympy.Expr, right: sympy.Expr) -> sympy.Expr:
        difference = self._range(sympy.expand(left - right))
        return left if difference.upper <= 0 else right if difference.lower >= 0 else Min(left, right)

    def _quotient(self, dividend: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr | None:
        """A division that truncates, where that is one that rounds down."""
        whole = self._range(dividend).lower >= 0 and self._range(divisor).lower > 0
        return FloorDiv(dividend, divisor) if whole else None


_COMPARISONS: dict[str, Callable[[ValueRanges], Any]] = {
    "slt": lambda difference: difference.upper < 0,
    "sle": lambda difference: difference.upper <= 0,
    "sgt": lambda difference: difference.lower > 0,
    "sge": lambda difference: difference.lower >= 0,
    "eq": lambda difference: difference.lower == 0 and difference.upper == 0,
    "ne": lambda difference: difference.lower > 0 or difference.upper < 0,
}

_AFFINE: dict[type, Callable[[Any, Any], sympy.Expr]] = {
    ir.AffineAddExpr: lambda left, right: left + right,
    ir.AffineMulExpr: lambda left, right: sympy.expand(left * right),
    ir.AffineModExpr: Mod,
    ir.AffineFloorDivExpr: FloorDiv,
    ir.AffineCeilDivExpr: lambda left, right: FloorDiv(left + right - 1, right),
}

_OPERATIONS: dict[str, Callable[..., sympy.Expr | None]] = {
    "arith.addi": lambda _, left, right: left + right,
    "arith.subi": lambda _, left, right: left - right,
    "arith.muli": lambda _, left, right: sympy.expand(left * right),
    "arith.floordivsi": lambda _, left, right: FloorDiv(left, right),
    "arith.divsi": Expressions._quotient,
    "arith.minsi": Expressions._least,
    "arith.maxsi": Expressions._greatest,
}
