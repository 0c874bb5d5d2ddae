"""Weights that are quantized around zero: their zero points are tensors, of which it is known that they are zeros."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from pipeline.frontend.functionalize.idle_dropouts import copy_of_graph

aten = torch.ops.aten

#: The module that registers the op, if anybody has asked for it.
_MODULE = "torch.ao.quantization.fx._decomposed"

_MESSAGE = "a zero point of a weight that was zero when the model was compiled is zero no longer: compile it again"


def drop_zero_points(exported: ExportedProgram) -> ExportedProgram:
    """dequantize_per_channel(q, scales, zeros)  →  dequantize_per_channel(q, scales, None), and a check of the zeros.

    Zero points are weights, and may change; who multiplies by such a weight need not add up the other factor as long
    as they do not.
    """
    if _MODULE not in sys.modules:
        return exported
    zeros = _zeros(exported, {_zero_point(node) for node in exported.graph.nodes if _dequantizes(node)})
    if not zeros:
        return exported
    module = copy_of_graph(exported)
    nodes = [node for node in module.graph.nodes if _dequantizes(node) and _zero_point(node) in zeros]
    zero_points = list(dict.fromkeys(node.args[2] for node in nodes))
    with module.graph.inserting_before(nodes[0]):
        _check(module.graph, zero_points)
    for node in nodes:
        node.update_arg(2, None)
    module.recompile()
    return exported._update(module, exported.graph_signature)


def _dequantizes(node: fx.Node) -> bool:
    """Whether a node dequantizes channels that have zero points."""
    op = torch.ops.quantized_decomposed.dequantize_per_channel.default
    return node.target == op and len(node.args) > 2 and isinstance(node.args[2], fx.Node)


def _zero_point(node: fx.Node) -> str:
    """The name of the node that is the zero points of another."""
    found: Any = node.args[2]
    return str(found.name)


def _zeros(exported: ExportedProgram, wanted: set[str]) -> set[str]:
    """Which of some placeholders are weights without gradient that are zeros."""
    signature = exported.graph_signature
    names = {**signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    mutated = set(signature.buffers_to_mutate.values())
    tensors = {**exported.state_dict, **exported.constants}
    values = {place: tensors.get(name) for place, name in names.items() if place in wanted and name not in mutated}
    return {
        place
        for place, value in values.items()
        if isinstance(value, torch.Tensor) and value.device.type == "cpu" and not value.any().item()
    }


def _check(graph: fx.Graph, zero_points: list[fx.Node]) -> None:
    """Has the program look whether zero points are zeros."""
    whole = zero_points[0] if len(zero_points) == 1 else _call(graph, aten.cat.default, zero_points)
    holds = _call(graph, aten.logical_not.default, _call(graph, aten.any.default, whole))
    _call(graph, aten._assert_async.msg, holds, _MESSAGE)


def _call(graph: fx.Graph, target: Any, *args: Any) -> fx.Node:
    node = graph.call_function(target, args)
    node.meta["val"] = target(*fx.map_arg(args, lambda operand: operand.meta["val"]))
    return node
