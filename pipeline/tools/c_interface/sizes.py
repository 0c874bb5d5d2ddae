"""Symbolic sizes in C: expressions such as `2*s0 + 1`, as `runtime/call/symbolic_sizes` evaluates them."""

from __future__ import annotations

import ast

from pipeline.errors import PipelineError

_BINARY: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_FLOORED = {"FloorDiv": "div", "CleanDiv": "div", "Mod": "mod", "PythonMod": "mod"}
_CHOSEN = {"Max": ">", "Min": "<"}
_COMPARED = {"Eq": "==", "Ne": "!=", "Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">="}

#: What C's division of negative numbers does otherwise.
FLOOR = """
static inline int64_t @p@_div(int64_t a, int64_t b) { return b ? a / b - ((a % b != 0) & ((a < 0) != (b < 0))) : 0; }
static inline int64_t @p@_mod(int64_t a, int64_t b) { return b ? a - b * @p@_div(a, b) : 0; }
"""


def symbol(name: str) -> str:
    """What a symbol is called in C."""
    return f"size_{name}"


def in_c(expression: str) -> str:
    """The expression in C; raises `PipelineError` for one that is not arithmetic of whole numbers."""
    return _in_c(ast.parse(expression, mode="eval").body, expression)


def _in_c(node: ast.expr, expression: str) -> str:
    def inner(part: ast.expr) -> str:
        return _in_c(part, expression)

    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return f"INT64_C({node.value})"
    if isinstance(node, ast.Name):
        return symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert)):
        return f"({'-' if isinstance(node.op, ast.USub) else '!'}{inner(node.operand)})"
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return f"({inner(node.left)} {_BINARY[type(node.op)]} {inner(node.right)})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        word = "div" if isinstance(node.op, ast.FloorDiv) else "mod"
        return f"@p@_{word}({inner(node.left)}, {inner(node.right)})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return f"({inner(node.left)} {'&' if isinstance(node.op, ast.BitAnd) else '|'} {inner(node.right)})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
        exponent = node.right.value
        if isinstance(exponent, int) and exponent >= 1:
            return f"({' * '.join([inner(node.left)] * exponent)})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        return f"({inner(node.left)} {_COMPARISONS[type(node.ops[0])]} {inner(node.comparators[0])})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        name, first, second = node.func.id, inner(node.args[0]), inner(node.args[1])
        if name in _FLOORED:
            return f"@p@_{_FLOORED[name]}({first}, {second})"
        if name in _CHOSEN:
            return f"({first} {_CHOSEN[name]} {second} ? {first} : {second})"
        if name in _COMPARED:
            return f"({first} {_COMPARED[name]} {second})"
    raise PipelineError(
        f"the size {expression!r} is no arithmetic that a C header can do; give those sizes to --emit=exe"
    )
