"""Which module of the model a node of an FX graph belongs to."""

from __future__ import annotations

from torch import fx

from pipeline.frontend.fx_passes.source_lines import modules_of, source_line
from pipeline.frontend.node_places import NodePlace


def place_of(node: fx.Node, op: str) -> NodePlace:
    """Where a node comes from, which calls `op`."""
    line = source_line(node)
    return NodePlace(node.name, modules_of(node), op, f"{line[0]}:{line[1]}" if line else None)
