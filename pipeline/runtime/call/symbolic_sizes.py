"""Sizes that are known at the call only: expressions such as `2*s0 + 1` in symbols, and conditions on them."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import PipelineError

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Invert: operator.not_}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
#: The functions of torch's symbolic sizes, by the names that they print.
_CALLS: dict[str, Callable[..., Any]] = {
    "Max": max,
    "Min": min,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "ModularIndexing": lambda x, divisor, modulus: x // divisor % modulus,
    "CeilDiv": lambda x, y: -(-x // y),
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "FloatPow": operator.pow,
    "PowByNatural": operator.pow,
    "ToFloat": float,
    "TruncToInt": math.trunc,
    "TruncToFloat": lambda x: float(math.trunc(x)),
    "CeilToInt": math.ceil,
    "FloorToInt": math.floor,
    "RoundToInt": round,
    "RoundDecimal": round,
    "Abs": abs,
    "Identity": lambda x: x,
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Lt": operator.lt,
    "Le": operator.le,
    "Gt": operator.gt,
    "Ge": operator.ge,
    **{
        f"OpaqueUnaryFn_{name}": getattr(math, name)
        for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2", "exp", "log")
    },
}


def evaluate(expression: str, symbols: Mapping[str, int]) -> Any:
    """The value of an expression whose symbols are known; raises `PipelineError` for one that isn't arithmetic."""
    return _value(_parse(expression), expression, symbols)


def names(expression: str) -> frozenset[str]:
    """The symbols of an expression."""
    found = (node.id for node in ast.walk(_parse(expression)) if isinstance(node, ast.Name))
    return frozenset(name for name in found if name not in _CALLS)


def solve(expression: str, value: int, symbols: Mapping[str, int]) -> tuple[str, int] | None:
    """(symbol, its value) where an expression is linear in the one symbol of it that is not known yet: 2*s0 + 1.

    None where no symbol is unknown or more than one, or where no whole number gives the value.
    """
    unknown = names(expression) - symbols.keys()
    if len(unknown) != 1:
        return None
    (symbol,) = unknown
    try:
        at_one, at_two = (evaluate(expression, {**symbols, symbol: number}) for number in (1, 2))
        number = (value - at_one) // (at_two - at_one) + 1
        return (symbol, number) if evaluate(expression, {**symbols, symbol: number}) == value else None
    except ZeroDivisionError:  # it does not depend on the symbol, or has no value where it was tried
        return None


@functools.cache
def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise PipelineError(f"size {expression!r}: not an expression") from None


def _value(node: ast.expr, expression: str, symbols: Mapping[str, int]) -> Any:
    def value(inner: Any) -> Any:
        return _value(inner, expression, symbols)

    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name) and node.id in symbols:
        return symbols[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](value(node.left), value(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](value(node.operand))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        return _COMPARISONS[type(node.ops[0])](value(node.left), value(node.comparators[0]))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        return _CALLS[node.func.id](*map(value, node.args))
    raise PipelineError(f"size {expression!r}: cannot be computed from {dict(symbols)}")
