"""What is left of floats of 8 bits when rules have taken the ops apart: their codes, which are moved as bytes are."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch.utils._pytree import tree_leaves, tree_map

from pipeline.frontend.float8.codes import FORMATS
from pipeline.frontend.float8.rules import aten, prims
from pipeline.frontend.fx_passes.refused_ops import refuse

#: What moves elements, besides what `float8_as_bytes` is told.
_MOVES = (
    aten.index_put.default,
    aten.lift_fresh_copy.default,
    aten.roll.default,
    aten.scatter.src,
    aten.split.Tensor,
    aten.sym_size.int,
    aten.unfold.default,
    prims.squeeze.default,
)


def float8_as_bytes(graph: fx.Graph, moves: Collection[Any]) -> None:
    """Tensors of uint8 in place of those of 8 bits, as operands and results of ops that move elements, as `moves` do.

    Raises:
        UnsupportedOpError: lists every op that computes with such tensors and has no rule.
    """
    nodes = [node for node in graph.nodes if _has_float8(node)]
    if not nodes:
        return
    users = dict.fromkeys(user for node in nodes for user in node.users)
    refused = [node for node in dict.fromkeys([*nodes, *users]) if not _is_known(node, moves)]
    refuse(refused, "is not supported on tensors of 8-bit floats")
    for node in graph.nodes:
        if node.op == "get_attr":
            _as_bytes(graph.owning_module, str(node.target))
        if node.target is aten.view.dtype and any(map(_has_float8, [node, node.args[0]])):
            node.args = (node.args[0], torch.uint8 if node.args[1] in FORMATS else node.args[1])
        elif node.kwargs.get("dtype") in FORMATS:
            node.kwargs = {**node.kwargs, "dtype": torch.uint8}
    for node in nodes:
        node.meta["val"] = tree_map(lambda leaf: leaf.view(torch.uint8) if _is_float8(leaf) else leaf, node.meta["val"])
        node.meta.pop("tensor_meta", None)  # the importer would believe it rather than the value
    for node in graph.find_nodes(op="call_function", target=aten.view.dtype):
        if node.args[0].meta["val"].dtype == node.args[1]:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _as_bytes(module: torch.nn.Module, path: str) -> None:
    """Makes a tensor of a module one of bytes, if it has floats of 8 bits."""
    owner, _, name = path.rpartition(".")
    held = module.get_submodule(owner)
    if _is_float8(tensor := getattr(held, name)):
        setattr(held, name, tensor.view(torch.uint8))


def _is_float8(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in FORMATS


def _has_float8(node: fx.Node) -> bool:
    return any(map(_is_float8, tree_leaves(node.meta.get("val"))))


def _is_known(node: fx.Node, moves: Collection[Any]) -> bool:
    """Whether the node may have to do with such tensors: what moves elements, borders, branches and loops."""
    if node.op != "call_function" or node.target in moves or node.target in _MOVES:
        return node.target is not aten.index_put.default or not any(node.args[3:])  # accumulate
    if node.target is operator.getitem:
        return _is_known(node.args[0], moves)
    return isinstance(node.target, HigherOrderOperator)
