"""Arithmetic with tensors that are one number everywhere, done where the graph is captured."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten

#: What makes such tensors: the position of the number among the arguments, or the number.
_MADE_BY_ARGUMENT = {
    aten.full.default: 1,
    aten.full_like.default: 1,
    aten.fill.Scalar: 1,
    aten.scalar_tensor.default: 0,
}
_MADE = {
    aten.zeros.default: 0,
    aten.zeros_like.default: 0,
    aten.ones.default: 1,
    aten.ones_like.default: 1,
}

#: What makes one of another, its first operand.
_MOVES = {
    aten.alias.default,
    aten.clone.default,
    aten.expand.default,
    aten.permute.default,
    aten.reshape.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.squeeze.dims,
    aten.transpose.int,
    aten.unsqueeze.default,
    aten.view.default,
}

_UNKNOWN = object()


def compute_splats(graph: fx.Graph) -> None:
    """mul(full([3], 2.0), -3)  →  full([3], -6.0), where sizes are known, for all that is computed element by element.

    Torch-mlir folds such ops, and does it wrong: it takes a negative integer beside floats for an unsigned one,
    truncates remainders, and takes True for -1. Remove when it folds as torch computes.
    """
    known: dict[fx.Node, torch.Tensor] = {}  # in tensors of the same rank and dtype: both decide about promotion
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor) or not _is_plain(value):
            continue
        number = _number(node, value, known)
        if number is None:
            continue
        known[node] = number
        if _is_computed(node):
            _replace(graph, node, number, known)


def _is_plain(value: torch.Tensor) -> bool:
    return not value.is_complex() and all(isinstance(size, int) for size in value.shape)


def _is_computed(node: fx.Node) -> bool:
    target = node.target
    if not isinstance(target, OpOverload) or target._schema.is_mutable or target in _MADE_BY_ARGUMENT:
        return False
    return torch.Tag.pointwise in target.tags and torch.Tag.nondeterministic_seeded not in target.tags


def _number(node: fx.Node, value: torch.Tensor, known: dict[fx.Node, torch.Tensor]) -> torch.Tensor | None:
    """What every element of the node's result is, where that is known."""
    if node.target in _MADE:
        return _filled(value, _MADE[node.target])
    if node.target in _MADE_BY_ARGUMENT:
        given = node.args[_MADE_BY_ARGUMENT[node.target]]
        return None if isinstance(given, fx.Node) else _filled(value, given)
    args, kwargs = fx.node.map_aggregate((node.args, dict(node.kwargs)), lambda one: _operand(one, known))
    operands = tree_leaves((args, kwargs))
    numbers = [one for one in operands if isinstance(one, torch.Tensor)]
    if not numbers or any(one is _UNKNOWN for one in operands):
        return None
    if node.target in _MOVES:
        return _filled(value, numbers[0].item())
    if not _is_computed(node):
        return None
    found = node.target(*args, **kwargs)
    return found if found.dtype == value.dtype and found.dim() == value.dim() else None


def _operand(operand: Any, known: dict[fx.Node, torch.Tensor]) -> Any:
    """A splat as its number, another tensor as `_UNKNOWN`, and what is no tensor as it is."""
    if isinstance(operand, fx.Node):
        return known.get(operand, _UNKNOWN)
    if isinstance(operand, torch.Tensor):
        first = operand.flatten()[:1]
        return first.reshape([1] * operand.dim()) if first.numel() and bool((operand == first).all()) else _UNKNOWN
    return operand


def _filled(value: torch.Tensor, number: Any) -> torch.Tensor:
    return torch.full([1] * value.dim(), number, dtype=value.dtype)


def _replace(graph: fx.Graph, node: fx.Node, number: torch.Tensor, known: dict[fx.Node, torch.Tensor]) -> None:
    value = node.meta["val"]
    with graph.inserting_before(node):
        splat = graph.call_function(aten.full.default, (list(value.shape), number.item()), {"dtype": value.dtype})
    splat.meta = dict(node.meta)
    known[splat] = number
    node.replace_all_uses_with(splat)
    graph.erase_node(node)
