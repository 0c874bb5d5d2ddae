"""Sizes that are known as the program runs only, as nodes of an FX graph."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import sympy
import torch
from torch import fx
from torch.utils._sympy.functions import FloorDiv, Mod

from pipeline.errors import CaptureError
from pipeline.frontend.views.factoring import polynomial

aten = torch.ops.aten

#: A size: a number, or a node that has it.
Size: TypeAlias = "int | fx.Node"


class SymbolicSizes:
    """Computes expressions in the symbols of a graph from the nodes that were visited before.

    Nodes are made at the graph's insertion point, which must not be in front of the last node visited. Their values
    stand in their metadata under `key`: dynamo has another one than traces.
    """

    def __init__(self, graph: fx.Graph, key: str = "val"):
        self._graph = graph
        self._key = key
        self._numbers: dict[sympy.Expr, Size] = {}
        self._places: dict[sympy.Expr, tuple[fx.Node, int]] = {}

    def visit(self, node: fx.Node) -> None:
        """Remembers a number, or the sizes of a tensor."""
        value = node.meta.get(self._key)
        if isinstance(value, torch.SymInt):
            self._numbers.setdefault(polynomial(value), node)
        elif isinstance(value, torch.Tensor):
            for dim, size in enumerate(value.shape):
                if isinstance(size, torch.SymInt):
                    self._places.setdefault(polynomial(size), (node, dim))

    def size(self, expression: sympy.Expr, origin: fx.Node) -> Size:
        """The value of an expression, computed with the source line of `origin`.

        Raises:
            CaptureError: it has a symbol or an operation that the sizes so far do not give.
        """
        if expression.is_Integer:
            return int(expression)
        if expression not in self._numbers:
            self._numbers[expression] = self._make(expression, origin)
        return self._numbers[expression]

    def _make(self, expression: sympy.Expr, origin: fx.Node) -> Size:
        if expression in self._places:
            return self._call(origin, aten.sym_size.int, *self._places[expression])
        numerator, denominator = expression.as_numer_denom()
        if denominator != 1:  # a ratio that is known to be a whole number
            return self._fold(origin, operator.floordiv, [numerator, denominator])
        if isinstance(expression, (sympy.Add, sympy.Mul, FloorDiv)):
            return self._fold(origin, _FUNCTIONS[expression.func], expression.args)
        if isinstance(expression, Mod):
            dividend, divisor = expression.args
            return self.size(dividend - FloorDiv(dividend, divisor) * divisor, origin)
        if expression.is_Pow and expression.exp.is_Integer:
            return self._fold(origin, operator.mul, [expression.base] * int(expression.exp))
        return self._solve(expression, origin)

    def _solve(self, symbol: sympy.Expr, origin: fx.Node) -> Size:
        """The symbol s from a size like 2 * s + 1."""
        for known in [*self._numbers, *self._places]:
            if known.free_symbols == {symbol} and known.is_polynomial(symbol) and sympy.degree(known, symbol) == 1:
                factor, rest = sympy.Poly(known, symbol).all_coeffs()
                scaled = self._call(origin, operator.sub, self.size(known, origin), int(rest))
                return self._call(origin, operator.floordiv, scaled, int(factor))
        raise CaptureError(f"the size {symbol} is not computed as the program runs")

    def _fold(self, origin: fx.Node, function: Callable[..., Any], terms: Any) -> Size:
        """f(f(a, b), c)"""
        sizes = (self.size(term, origin) for term in terms)
        return functools.reduce(functools.partial(self._call, origin, function), sizes)

    def _call(self, origin: fx.Node, function: Any, *arguments: Any) -> Size:
        values = [argument.meta[self._key] if isinstance(argument, fx.Node) else argument for argument in arguments]
        value = function(*values)
        if isinstance(value, int):
            return value
        node = self._graph.call_function(function, arguments)
        node.meta = {**origin.meta, self._key: value}
        node.meta.pop("tensor_meta", None)
        return node


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sympy.Add: operator.add,
    sympy.Mul: operator.mul,
    FloorDiv: operator.floordiv,
}
