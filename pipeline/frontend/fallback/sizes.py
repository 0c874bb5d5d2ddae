"""Sizes are taken from the arguments, where they have them: a size of what a part computes would cut the graph."""

from __future__ import annotations

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
