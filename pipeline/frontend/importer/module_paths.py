"""Which module of the model a node of an FX graph belongs to."""

from __future__ import annotations

import re

from torch import fx

from pipeline.frontend.fx_passes.source_lines import source_line
from pipeline.frontend.node_places import NodePlace


def place_of(node: fx.Node, op: str) -> NodePlace:
    """Where a node comes from, which calls `op`."""
    modules = tuple((_path(path), _kind(kind)) for path, kind in (node.meta.get("nn_module_stack") or {}).values())
    line = source_line(node)
    return NodePlace(node.name, modules, op, f"{line[0]}:{line[1]}" if line else None)


def _path(text: str) -> str:
    """`L['self'].layers[0].linear`, as dynamo says it, or `layers.0.linear` → `layers.0.linear`."""
    text = re.sub(r"^L\['self'\]", "", text)
    text = re.sub(r"\[['\"]?([^\]'\"]*)['\"]?\]", r".\1", text)
    return text.replace("._modules.", ".").strip(".")


def _kind(kind: object) -> str:
    return (kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))).rpartition(".")[2]
