"""What is accumulated in zeros and then added is accumulated in the other summand."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

aten = torch.ops.aten

#: What adds values to elements of its first operand.
_ACCUMULATES = (aten.index_put.default, aten.scatter_add.default, aten.index_add.default)

#: What hands on elements in their order.
_RESHAPES = (aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.alias.default)

_ZEROS = (aten.zeros.default, aten.zeros_like.default)

#: What fills a tensor with a number, its second argument.
_FILLS = (aten.full.default, aten.full_like.default)


def accumulate_in_summands(graph: fx.Graph) -> None:
    """add(x, index_put(zeros, [i], v, accumulate))  →  index_put(x, [i], v, accumulate), and through a reshape.

    As the two gradients of an embedding whose table is the last layer's weight, too.
    """
    for node in list(graph.nodes):
        if node.target is not aten.add.Tensor or node.kwargs or len(node.args) != 2:
            continue
        for summand, other in (node.args, node.args[::-1]):
            put = _accumulation(other)
            if put is not None and _is_alike(summand, other) and _is_alike(other, node):
                _accumulate(graph, node, summand, put)
                break


def _accumulation(node: Any) -> fx.Node | None:
    """What adds to zeros, if a sum alone reads it or a reshape of it."""
    while isinstance(node, fx.Node) and len(node.users) == 1:
        if node.target not in _RESHAPES:
            return node if _adds_to_zeros(node) else None
        node = node.args[0]
    return None


def _accumulate(graph: fx.Graph, node: fx.Node, summand: fx.Node, put: fx.Node) -> None:
    shape = put.meta["val"].shape
    with graph.inserting_before(node):
        begun = _reshaped(graph, summand, shape)
        made = graph.call_function(put.target, (begun, *put.args[1:]), dict(put.kwargs))
        made.meta = dict(put.meta)
        node.replace_all_uses_with(_reshaped(graph, made, node.meta["val"].shape))
    graph.erase_node(node)


def _reshaped(graph: fx.Graph, node: fx.Node, shape: torch.Size) -> fx.Node:
    value = node.meta["val"]
    if value.shape == shape:
        return node
    made = graph.call_function(aten.view.default, (node, list(shape)))
    made.meta = {**node.meta, "val": value.reshape(shape)}
    return made


def _adds_to_zeros(node: Any) -> bool:
    if not isinstance(node, fx.Node) or node.target not in _ACCUMULATES:
        return False
    replaces = node.target is aten.index_put.default and (*node.args[3:], node.kwargs.get("accumulate"))[0] is not True
    return not replaces and _is_zeros(node.args[0])


def _is_zeros(node: Any) -> bool:
    if not isinstance(node, fx.Node):
        return False
    if node.target in (*_RESHAPES, aten.expand.default, aten._to_copy.default):
        return _is_zeros(node.args[0])
    return node.target in _ZEROS or (node.target in _FILLS and node.args[1] == 0)


def _is_alike(one: Any, other: fx.Node) -> bool:
    """Whether two tensors have the same dtype and the same known sizes."""
    mine, theirs = (node.meta.get("val") if isinstance(node, fx.Node) else None for node in (one, other))
    if not isinstance(mine, torch.Tensor) or not isinstance(theirs, torch.Tensor) or mine.dtype != theirs.dtype:
        return False
    sizes = [*mine.shape, *theirs.shape]
    return all(isinstance(size, int) for size in sizes) and mine.shape == theirs.shape
