"""Arithmetic with tensors that are one number everywhere, done where the graph is captured."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
prims = torch.ops.prims

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

#: What gives its first operand, where that has the shape and the dtype of the result.
_KEEPS = {
    aten._to_copy.default,
    aten.alias.default,
    aten.clone.default,
    aten.expand.default,
    aten.reshape.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    aten.view.default,
}

#: What makes one of another by indices.
_GATHERS = {
    aten.embedding.default,
    aten.gather.default,
    aten.index.Tensor,
    aten.index_select.default,
    aten.take.default,
}

#: What makes one of another, or several, its first operand; what they are told besides are numbers.
_MOVES = (
    (_KEEPS - {aten._to_copy.default})
    | _GATHERS
    | {
        operator.getitem,
        aten._unsafe_view.default,
        aten.as_strided.default,
        aten.detach.default,
        aten.diagonal.default,
        aten.flip.default,
        aten.permute.default,
        aten.repeat.default,
        aten.roll.default,
        aten.split.Tensor,
        aten.split_with_sizes.default,
        aten.squeeze.default,
        aten.squeeze.dim,
        aten.t.default,
        aten.transpose.int,
        aten.unbind.int,
        aten.unfold.default,
        prims.broadcast_in_dim.default,
        prims.collapse.default,
        prims.collapse_view.default,
        prims.reshape.default,
        prims.rev.default,
        prims.split_dim.default,
        prims.squeeze.default,
        prims.transpose.default,
        prims.view_of.default,
    }
)

_UNKNOWN = object()


def compute_splats(graph: fx.Graph) -> None:
    """mul(full([3], 2.0), -3)  →  full([3], -6.0), where sizes are known, for all that is computed element by element.

    eq(x, x)  →  full(True) of integers, likewise. where(True, a, x)  →  full_like(x, a), whatever the sizes: torch-mlir
    makes a constant of sizes that are not known.

    Torch-mlir folds such ops, and does it wrong: it takes a negative integer beside floats for an unsigned one,
    truncates remainders, takes True for -1, and True + True for False. Remove when it folds as torch computes.
    """
    known: dict[fx.Node, torch.Tensor] = {}  # in tensors of the same rank and dtype: both decide about promotion
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op == "call_function" and isinstance(value, (tuple, list)) and node.target in _MOVES:
            if (number := _moved(node, known)) is not None:
                known[node] = number
            continue
        if node.op != "call_function" or not isinstance(value, torch.Tensor):
            continue
        if not _is_plain(value):
            if node.target is aten.where.self:
                _choose(graph, node, known)
            continue
        number = _number(node, value, known)
        if number is None:
            continue
        known[node] = number
        if _is_computed(node) or node.target in _GATHERS:
            _replace(graph, node, number, known)


def _choose(graph: fx.Graph, node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> None:
    """Puts what a condition that is known chooses in the place of a `where`, if an operand has the result's shape."""
    flag, value = _operand(node.args[0], known), node.meta["val"]
    if not isinstance(flag, torch.Tensor):
        return
    chosen = node.args[1] if flag.item() else node.args[2]
    number = _operand(chosen, known)
    wholes = [read for read in node.all_input_nodes if _has_shape_of(read.meta["val"], value)]
    if isinstance(chosen, fx.Node) and chosen in wholes and chosen.meta["val"].dtype == value.dtype:
        made = chosen
    elif wholes and isinstance(number, torch.Tensor):
        with graph.inserting_before(node):
            made = graph.call_function(aten.full_like.default, (wholes[0], number.item()), {"dtype": value.dtype})
        made.meta = dict(node.meta)
    else:
        return
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _has_shape_of(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dim() == other.dim() and statically_known_true(sym_eq(one.shape, other.shape))


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
    if node.target is aten.eq.Tensor and _are_same(*node.args) and not _is_float(node.args[0]):
        return _filled(value, True)
    if node.target in _MOVES or (node.target is aten.view.dtype and _dtype(node.args[0]) == value.dtype):
        source = _moved(node, known)
        return None if source is None else _filled(value, source.item())
    if node.target is aten.cat.default:
        return _joined(node, value, known)
    args, kwargs = fx.node.map_aggregate((node.args, dict(node.kwargs)), lambda one: _operand(one, known))
    operands = tree_leaves((args, kwargs))
    numbers = [one for one in operands if isinstance(one, torch.Tensor)]
    if not numbers or any(one is _UNKNOWN for one in operands):
        return None
    if not _is_computed(node):
        return None
    found = node.target(*args, **kwargs)
    return found if found.dtype == value.dtype and found.dim() == value.dim() else None


def _moved(node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> torch.Tensor | None:
    """The number that the first operand is; None if it is not known, or indices are, which may be out of range."""
    source, *rest = node.args
    if any(isinstance(index, fx.Node) for index in tree_leaves((rest, dict(node.kwargs)))):
        return None
    number = _operand(source, known)
    return number if isinstance(number, torch.Tensor) else None


def _joined(node: fx.Node, value: torch.Tensor, known: dict[fx.Node, torch.Tensor]) -> torch.Tensor | None:
    """What every element of tensors one behind the other is."""
    parts = [_operand(part, known) for part in tree_leaves(node.args[0])]
    if any(part is _UNKNOWN for part in parts) or len({part.item() for part in parts}) != 1:
        return None
    return _filled(value, parts[0].item())


def _dtype(operand: Any) -> torch.dtype:
    return operand.meta["val"].dtype if isinstance(operand, fx.Node) else operand.dtype


def _operand(operand: Any, known: dict[fx.Node, torch.Tensor]) -> Any:
    """A splat as its number, another tensor as `_UNKNOWN`, and what is no tensor as it is."""
    if isinstance(operand, fx.Node):
        return known.get(operand, _UNKNOWN)
    if isinstance(operand, torch.Tensor):
        first = operand.flatten()[:1]
        return first.reshape([1] * operand.dim()) if first.numel() and bool((operand == first).all()) else _UNKNOWN
    return operand


def _are_same(one: Any, other: Any, depth: int = 8) -> bool:
    """Whether two operands are the same, or computed in the same way, as torch-mlir finds out."""
    if not isinstance(one, fx.Node) or not isinstance(other, fx.Node):
        return type(one) is type(other) and not isinstance(one, torch.Tensor) and bool(one == other)
    one, other = _source(one), _source(other)
    if one is other:
        return True
    mine, theirs = ((node.target, len(node.args), len(node.kwargs)) for node in (one, other))
    if not depth or mine != theirs or not _is_pure(one):
        return False
    pairs = zip(tree_leaves((one.args, one.kwargs)), tree_leaves((other.args, other.kwargs)), strict=False)
    return all(_are_same(*pair, depth - 1) for pair in pairs)


def _source(node: fx.Node) -> fx.Node:
    """The value that a node is, through what keeps it as it is."""
    while node.target in _KEEPS and isinstance(source := node.args[0], fx.Node):
        before, after = source.meta["val"], node.meta["val"]
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            break
        node = source
    return node


def _is_pure(node: fx.Node) -> bool:
    target = node.target
    if not isinstance(target, OpOverload) or target._schema.is_mutable:
        return False
    return torch.Tag.nondeterministic_seeded not in target.tags


def _is_float(node: Any) -> bool:
    return not isinstance(node, fx.Node) or node.meta["val"].is_floating_point()


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
