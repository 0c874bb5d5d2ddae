"""Activations beside convolutions are kept with their channels last, as the kernels of both graphs have them.

forward: returns x: [N, C, H, W]      →  returns permute(x): [N, H, W, C]
backward: takes x: [N, C, H, W]       →  takes y: [N, H, W, C], and reads permute(y)

A layout is part of a graph's results: else forward would write an activation twice, and backward turn it back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

aten = torch.ops.aten


def keep_channels_last(forward: fx.GraphModule, backward: fx.GraphModule, results: int) -> None:
    """Changes both graphs in place; `results` is the number of forward's own results, before what it keeps."""
    output = forward.graph.output_node()
    values = list(output.args[0])
    taken = {node.name: node for node in backward.graph.find_nodes(op="placeholder")}
    beside = _beside_convolutions(forward.graph) | {
        node
        for node in values[results:]
        if isinstance(node, fx.Node) and node.op == "call_function" and _is_convolved(taken.get(node.name))
    }
    own = set(values[:results])
    for number, node in enumerate(values[results:], results):
        if node not in beside or node in own or node.name not in taken:
            continue
        values[number] = _last(forward.graph, node, output)
        _take_last(backward.graph, taken[node.name])
    output.args = (tuple(values),)
    forward.recompile()
    backward.recompile()


def _beside_convolutions(graph: fx.Graph) -> set[fx.Node]:
    """What convolutions read and compute, and what is computed from that element by element."""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op != "call_function" or _rank(node) < 4:
            continue
        made = node.target is aten.convolution.default or any(
            source in found and _shape(source) == _shape(node) for source in node.all_input_nodes
        )
        if made or _is_convolved(node):
            found.add(node)
    return found


def _is_convolved(node: fx.Node | None) -> bool:
    """Whether a convolution, or the gradient of one, reads a value as its data."""
    if node is None:
        return False
    data = {aten.convolution.default: 1, aten.convolution_backward.default: 2}
    return _rank(node) > 3 and any(node in user.args[: data.get(user.target, 0)] for user in node.users)


def _last(graph: fx.Graph, node: fx.Node, output: fx.Node) -> fx.Node:
    """permute(x), its channels last, and in memory, too."""
    rank = _rank(node)
    value = node.meta["val"].permute(0, *range(2, rank), 1)
    with graph.inserting_before(output):
        moved = graph.call_function(aten.permute.default, (node, [0, *range(2, rank), 1]))
        laid_out = graph.call_function(aten.clone.default, (moved,), {"memory_format": torch.contiguous_format})
    moved.meta, laid_out.meta = {**node.meta, "val": value}, {**node.meta, "val": value.contiguous()}
    return laid_out


def _take_last(graph: fx.Graph, taken: fx.Node) -> None:
    """A placeholder of what `_last` gives, and what was read of it before."""
    rank, users = _rank(taken), list(taken.users)
    value = taken.meta["val"]
    with graph.inserting_after(_last_placeholder(graph)):
        back = graph.call_function(aten.permute.default, (taken, [0, rank - 1, *range(1, rank - 1)]))
    back.meta = dict(taken.meta)
    taken.meta = {**taken.meta, "val": value.permute(0, *range(2, rank), 1).contiguous()}
    for user in users:
        user.replace_input_with(taken, back)


def _last_placeholder(graph: fx.Graph) -> fx.Node:
    return graph.find_nodes(op="placeholder")[-1]


def _shape(node: fx.Node) -> Any:
    return getattr(node.meta.get("val"), "shape", None)


def _rank(node: fx.Node) -> int:
    return len(_shape(node) or ())
