"""Ops of a graph that cannot be compiled, as one error that lists them with their lines."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from torch import fx

from pipeline.errors import UnsupportedOpError
from pipeline.frontend.fx_passes.source_lines import source_line


def refuse(nodes: Sequence[fx.Node], reason: str) -> None:
    """Raises `UnsupportedOpError` for the nodes, if there are any; results of an op among them are not listed."""
    refused = []
    for node in [node for node in nodes if node.target is not operator.getitem]:
        line = source_line(node)
        name = node.target.name().replace("::", ".") if hasattr(node.target, "name") else str(node.target)
        refused.append((name, f"{line[0]}:{line[1]}" if line else None, reason))
    if refused:
        raise UnsupportedOpError(refused)
