"""Numbers that select rows, checked."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

aten = torch.ops.aten


def check_numbers_that_select(graph: fx.Graph) -> None:
    """select(x, dim, n)  →  squeeze(index_select(x, dim, [n])), where n is known only as the program runs.

    Torch-mlir clamps such an n, and reads beyond the tensor; an index that lies in a tensor is checked.
    """
    for node in list(graph.nodes):
        if node.target is not aten.select.int or not isinstance(number := node.args[2], fx.Node):
            continue
        source, dim = node.args[:2]
        value = source.meta["val"]
        with graph.inserting_before(node):
            index = _index_tensor(graph, number, source, dim, node)
            row = _call(graph, node, aten.index_select.default, source, dim, index)
            result = _call(graph, node, aten.squeeze.dim, row, dim)
        with value.fake_mode:
            row.meta["val"] = value.new_empty([1 if d == dim % value.dim() else s for d, s in enumerate(value.shape)])
        result.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(result)
        graph.erase_node(node)


def _index_tensor(graph: fx.Graph, number: fx.Node, source: fx.Node, dim: int, origin: fx.Node) -> fx.Node:
    """[n], or [n + size] if n is negative."""
    fake = source.meta["val"].fake_mode
    index = graph.call_function(aten.full.default, ([1], number), {"dtype": torch.int64})
    size = source.meta["val"].shape[dim]
    if not isinstance(size, int):
        size = _call(graph, origin, aten.sym_size.int, source, dim)
        size.meta["val"] = source.meta["val"].shape[dim]
    is_negative = _call(graph, origin, aten.lt.Scalar, index, 0)
    shifted = _call(graph, origin, aten.add.Tensor, index, size)
    wrapped = _call(graph, origin, aten.where.self, is_negative, shifted, index)
    index.meta = dict(is_negative.meta)
    with fake:
        for node in (index, shifted, wrapped):
            node.meta["val"] = torch.empty([1], dtype=torch.int64)
        is_negative.meta["val"] = torch.empty([1], dtype=torch.bool)
    return wrapped


def _call(graph: fx.Graph, origin: fx.Node, target: Any, *arguments: Any) -> fx.Node:
    """A call with the source line of `origin`; the caller says what its value is."""
    node = graph.call_function(target, arguments)
    node.meta = {key: value for key, value in origin.meta.items() if key != "tensor_meta"}
    return node
