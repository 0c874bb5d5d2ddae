"""Literals: small constant tensors, which stand in the place of nodes among arguments."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves


def tensor_of(operand: fx.Node | torch.Tensor) -> torch.Tensor:
    """A tensor of an operand's type: a literal is one itself."""
    value = operand.meta["val"] if isinstance(operand, fx.Node) else operand
    assert isinstance(value, torch.Tensor)
    return value


def literals_of(node: fx.Node) -> list[torch.Tensor]:
    """Those among a node's arguments."""
    return [leaf for leaf in tree_leaves((node.args, node.kwargs)) if isinstance(leaf, torch.Tensor)]


def change_literals(node: fx.Node, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Puts others in the place of a node's literals."""
    if literals_of(node):
        changed = fx.node.map_aggregate(
            (node.args, dict(node.kwargs)), lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else leaf
        )
        node.args, node.kwargs = changed


def literals_as_nodes_in_lists(graph: fx.Graph) -> None:
    """index(x, [node, literal])   ->   index(x, [node, get_attr]): torch-mlir has no lists of both."""
    for node in list(graph.nodes):
        if node.op == "call_function":
            node.args = tuple(_all_nodes(node, argument) for argument in node.args)


def _all_nodes(node: fx.Node, argument: Any) -> Any:
    has_literals = isinstance(argument, (list, tuple)) and any(isinstance(entry, torch.Tensor) for entry in argument)
    return [_node_of(node, entry) for entry in argument] if has_literals else argument


def _node_of(user: fx.Node, entry: Any) -> Any:
    """A node that stands for a literal; anything else as it is."""
    if isinstance(entry, fx.Node) or not isinstance(entry, torch.Tensor):
        return entry
    module = user.graph.owning_module
    name = next(name for name in map("literal_{}".format, itertools.count()) if not hasattr(module, name))
    module.register_buffer(name, entry)
    with user.graph.inserting_before(user):
        made = user.graph.get_attr(name)
    made.meta["val"] = entry
    return made
