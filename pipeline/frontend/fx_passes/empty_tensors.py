"""Tensors without elements become zeros of their shape."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils._sympy.functions import FloorDiv, Max, Min

from pipeline.errors import CaptureError

aten = torch.ops.aten

_PRODUCTS = (aten.mm.default, aten.bmm.default, aten.matmul.default)

#: How parts of a size are put together.
_OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    sympy.Add: operator.add,
    sympy.Mul: operator.mul,
    FloorDiv: operator.floordiv,
    Min: torch.sym_min,
    Max: torch.sym_max,
}


def replace_empty_tensors(graph: fx.Graph) -> None:
    """view(x) -> [0, 4]  →  zeros([0, 4]); all(x: [5, 0])  →  full([], True); cat(x, empty)  →  cat(x).

    Torch-mlir divides by the size of an empty tensor at compile time (SIGFPE) in views, and fails on others. MLIR takes
    a sum that starts from what it does not read for one that writes every element, which one over nothing does not.
    """
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor):
            continue
        if _is_empty(node) or (node.target in _PRODUCTS and all(map(_is_empty, node.all_input_nodes))):
            with graph.inserting_before(node):
                shape = [_size_before(node, size) for size in value.shape]
                zeros = graph.call_function(aten.zeros.default, (shape,), {"dtype": value.dtype})
            _put(zeros, node)
        elif (number := _made_of_nothing(node, value)) is not None:
            with graph.inserting_before(node):
                full = graph.call_function(aten.full.default, (list(value.shape), number), {"dtype": value.dtype})
            _put(full, node)
        elif node.target is aten.cat.default:
            parts = [part for part in node.args[0] if not _is_empty(part)]
            node.args = (parts, *node.args[1:])


def _put(made: fx.Node, node: fx.Node) -> None:
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)


def _made_of_nothing(node: fx.Node, value: torch.Tensor) -> Any:
    """What every element of a result is that has only empty tensors to be made of; None if that is not one number."""
    operands, target = [operand.meta.get("val") for operand in node.all_input_nodes], node.target
    if not operands or not all(map(_is_empty, node.all_input_nodes)) or not all(map(_is_known, [value, *operands])):
        return None
    if not isinstance(target, OpOverload) or target.namespace != "aten":
        return None
    if target._schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags:
        return None
    args, kwargs = fx.map_arg((node.args, dict(node.kwargs)), lambda one: _zeros(one.meta["val"]))
    found = target(*args, **kwargs).flatten()
    return found[0].item() if torch.equal(found.nan_to_num(), found[:1].nan_to_num().expand_as(found)) else None


def _zeros(like: torch.Tensor) -> torch.Tensor:
    return torch.zeros(like.shape, dtype=like.dtype)


def _is_known(value: torch.Tensor) -> bool:
    return all(isinstance(size, int) for size in value.shape) and not value.is_complex()


def _size_before(node: fx.Node, size: int | torch.SymInt) -> Any:
    """The size in front of a node: a number, one of an earlier tensor, or what is computed of such."""
    expression = size if isinstance(size, int) else size.node.expr
    return _number_before(node, sympy.sympify(expression))


def _number_before(node: fx.Node, expression: sympy.Expr) -> Any:
    if expression.is_Integer:
        return int(expression)
    for earlier in itertools.takewhile(lambda other: other is not node, node.graph.nodes):
        found = _known_to(earlier, expression)
        if found is not None:
            return found
    if expression.func not in _OPERATORS:
        raise CaptureError(f"the size {expression} of an empty tensor is none of an earlier tensor")
    parts = [_number_before(node, part) for part in expression.args]
    return functools.reduce(functools.partial(_combined, node.graph, _OPERATORS[expression.func]), parts)


def _known_to(node: fx.Node, expression: sympy.Expr) -> fx.Node | None:
    """The number itself, or a size of the tensor, that `node` gives, as a node at the insertion point."""
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        return node if value.node.expr == expression else None
    for dim, extent in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
        if isinstance(extent, torch.SymInt) and extent.node.expr == expression:
            found = node.graph.call_function(aten.sym_size.int, (node, dim))
            found.meta["val"] = extent
            return found
    return None


def _combined(graph: fx.Graph, function: Callable[[Any, Any], Any], one: Any, other: Any) -> fx.Node:
    """A node of what is computed of two numbers, of which one is a node."""
    made = graph.call_function(function, (one, other))
    made.meta["val"] = function(*(part.meta["val"] if isinstance(part, fx.Node) else part for part in (one, other)))
    return made


def _is_empty(operand: fx.Node | torch.Tensor) -> bool:
    value = operand.meta.get("val") if isinstance(operand, fx.Node) else operand
    return isinstance(value, torch.Tensor) and any(isinstance(size, int) and size == 0 for size in value.shape)
