"""Sizes that are known at the call only: expressions such as `2*s0 + 1` in symbols, and conditions on them."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import PipelineError

_SIGNS: dict[type[ast.operator] | type[ast.cmpop], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_PREFIXES: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.Invert: "not "}  # what is inverted is a condition
#: The functions of torch's symbolic sizes, by the names that they print.
FUNCTIONS: dict[str, Callable[..., Any]] = {
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
    if not names(expression) <= symbols.keys():
        raise PipelineError(f"size {expression!r}: cannot be computed from {dict(symbols)}")
    return _function(expression)(symbols)


def in_python(expression: str, places: Mapping[str, str]) -> str:
    """The expression as Python with `FUNCTIONS` and what stands there for each symbol.

    Raises `PipelineError` for one that isn't arithmetic: it may come from a file.
    """
    return _text(_parse(expression), expression, places)


def python_function(parameters: str, body: str) -> Callable[..., Any]:
    """A function whose body is made of what `in_python` gives."""
    function: Callable[..., Any] = eval(f"lambda {parameters}: {body}", {"__builtins__": {}, **FUNCTIONS})
    return function


@functools.cache
def _function(expression: str) -> Callable[[Mapping[str, int]], Any]:
    return python_function("symbols", in_python(expression, {name: f"symbols[{name!r}]" for name in names(expression)}))


def names(expression: str) -> frozenset[str]:
    """The symbols of an expression."""
    found = (node.id for node in ast.walk(_parse(expression)) if isinstance(node, ast.Name))
    return frozenset(name for name in found if name not in FUNCTIONS)


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


def _text(node: ast.expr, expression: str, places: Mapping[str, str]) -> str:
    def text(inner: ast.expr) -> str:
        return _text(inner, expression, places)

    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and math.isfinite(node.value):
        return repr(node.value)
    if isinstance(node, ast.Name) and node.id in places:
        return places[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        return f"({text(node.left)} {_SIGNS[type(node.op)]} {text(node.right)})"
    if isinstance(node, ast.UnaryOp) and type(node.op) in _PREFIXES:
        return f"({_PREFIXES[type(node.op)]}{text(node.operand)})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SIGNS:
        return f"({text(node.left)} {_SIGNS[type(node.ops[0])]} {text(node.comparators[0])})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        return f"{node.func.id}({', '.join(map(text, node.args))})"
    raise PipelineError(f"size {expression!r}: is not arithmetic")
