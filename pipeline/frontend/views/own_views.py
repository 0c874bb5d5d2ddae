"""Views of symbolic sizes in an FX graph → our own ops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from pipeline import remarks
from pipeline.frontend.views.factoring import ReshapeStep, factor
from pipeline.frontend.views.ops import collapse_shape, expand_shape
from pipeline.frontend.views.symbolic_sizes import SymbolicSizes

aten, prims = torch.ops.aten, torch.ops.prims

#: What gives a tensor another shape, and keeps its elements in their order.
VIEWS = (
    aten.view.default,
    aten.view_copy.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.flatten.using_ints,
    aten.unflatten.int,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    prims.collapse.default,
    prims.collapse_view.default,
    prims.split_dim.default,
)


def own_views(graph: fx.Graph) -> None:
    """view(x: [a, b, c] -> [a * b, c])  →  pipeline.collapse_shape(x, [2, 1]), where a size is symbolic."""
    sizes = SymbolicSizes(graph)
    for node in list(graph.nodes):
        if node.op == "call_function" and (_is_symbolic_view(node) or _is_identity(node)):
            _rewrite(graph, node, sizes)
        else:
            sizes.visit(node)


def _is_symbolic_view(node: fx.Node) -> bool:
    return node.target in VIEWS and isinstance(node.args[0], fx.Node) and _is_symbolic(node, node.args[0])


def _is_identity(node: fx.Node) -> bool:
    """Whether a node broadcasts to the shape that it is given, of which some size is symbolic."""
    if node.target is not aten.expand.default or not isinstance(source := node.args[0], fx.Node):
        return False
    before, after = source.meta["val"].shape, node.meta["val"].shape
    return _is_symbolic(source) and len(before) == len(after) and factor(before, after) == []


def _is_symbolic(*nodes: fx.Node) -> bool:
    return any(isinstance(size, torch.SymInt) for node in nodes for size in node.meta["val"].shape)


def _rewrite(graph: fx.Graph, node: fx.Node, sizes: SymbolicSizes) -> None:
    source = node.args[0]
    assert isinstance(source, fx.Node)
    with graph.inserting_before(node):
        for step in factor(source.meta["val"].shape, node.meta["val"].shape):
            source = _collapse(graph, source, step) if step.kind == "collapse" else _expand(graph, source, step, sizes)
            source.meta = {**node.meta, **source.meta}
    node.replace_all_uses_with(source)
    graph.erase_node(node)


def _collapse(graph: fx.Graph, source: fx.Node, step: ReshapeStep) -> fx.Node:
    sizes = iter(source.meta["val"].shape)
    shape = [math.prod(itertools.islice(sizes, length)) for length in step.lengths]
    call = graph.call_function(collapse_shape, (source, list(step.lengths)))
    call.meta = {"val": _like(source, shape), "tensor_meta": None}
    return call


def _expand(graph: fx.Graph, source: fx.Node, step: ReshapeStep, sizes: SymbolicSizes) -> fx.Node:
    if not step.proved:
        remarks.note("views", "missed", "aten.view", f"{source}: a view whose number of elements the call checks")
    shape = [sizes.size(size, source) for size in step.shape]
    call = graph.call_function(expand_shape, (source, list(step.lengths), shape, step.proved))
    values = [size.meta["val"] if isinstance(size, fx.Node) else size for size in shape]
    call.meta = {"val": _like(source, values), "tensor_meta": None}
    return call


def _like(source: fx.Node, shape: Sequence[Any]) -> torch.Tensor:
    value = source.meta["val"]
    with value.fake_mode:
        return value.new_empty(shape)
