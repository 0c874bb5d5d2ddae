"""Sizes are taken from the arguments, where they have them: a size of what a part computes would cut the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten


def sizes_of_arguments(graph: fx.Graph) -> None:
    """sym_size(f(x), 1) → sym_size(x, 0), if both are known to be the same."""
    known: dict[Any, tuple[fx.Node, int]] = {}
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            for dim, size in enumerate(value.shape):
                if isinstance(size, torch.SymInt):
                    known.setdefault(size.node.expr, (node, dim))
        elif node.target is aten.sym_size.int and isinstance(value, torch.SymInt) and value.node.expr in known:
            node.args = known[value.node.expr]


def arguments_for_sizes(nodes: Sequence[fx.Node], inputs: Sequence[fx.Node]) -> list[fx.Node]:
    """The arguments that show sizes which those nodes' shapes are made of, and which the inputs of a part do not."""
    missing = set().union(*map(_symbols, nodes)) - set().union(*map(_shown, inputs))
    found: list[fx.Node] = []
    for argument in nodes[0].graph.find_nodes(op="placeholder"):
        if _shown(argument) & missing:
            found.append(argument)
            missing -= _shown(argument)
    return found


def _sizes(node: fx.Node) -> list[Any]:
    """The symbolic sizes of a tensor, or the number that a node is, as expressions."""
    value = node.meta.get("val")
    sizes = value.shape if isinstance(value, torch.Tensor) else [value]
    return [size.node.expr for size in sizes if isinstance(size, torch.SymInt)]


def _symbols(node: fx.Node) -> set[Any]:
    return {symbol for size in _sizes(node) for symbol in size.free_symbols}


def _shown(node: fx.Node) -> set[Any]:
    """The symbols that can be told from one size."""
    return {symbol for size in _sizes(node) for symbol in size.free_symbols if len(size.free_symbols) == 1}
