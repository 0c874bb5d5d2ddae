"""Dropouts that drop nothing, which are their operands in eager mode and copies in torch's decompositions.

Here in exported programs; `decompositions/replacements/random.py` has it for torch.compile.
"""

from __future__ import annotations

import copy

import torch
from torch import fx
from torch.export import ExportedProgram

aten = torch.ops.aten

#: Of arguments (x, p, train).
_DROPOUTS = {aten.dropout.default, aten.alpha_dropout.default, aten.feature_dropout.default}
_DROPOUTS |= {aten.feature_alpha_dropout.default, aten.dropout_.default, aten.alpha_dropout_.default}
_DROPOUTS |= {aten.feature_dropout_.default, aten.feature_alpha_dropout_.default}


def alias_idle_dropouts(exported: ExportedProgram) -> ExportedProgram:
    """dropout(x, p, train=False), dropout(x, 0, ..)  →  alias(x), so that what writes to one writes to the other."""
    if not _idle(exported.graph_module):
        return exported
    module = copy_of_graph(exported)
    for node in _idle(module):
        node.target, node.args = aten.alias.default, (node.args[0],)
        node.meta["val"] = node.all_input_nodes[0].meta["val"]
    for inner in all_graphs(module):
        inner.recompile()
    return exported._update(module, exported.graph_signature)


def copy_of_graph(exported: ExportedProgram) -> fx.GraphModule:
    """A program's graph, and those of its regions, to be changed. Copies of FX rename what is called like a builtin."""
    module = copy.deepcopy(exported.graph_module)
    for old, new in zip(all_graphs(exported.graph_module), all_graphs(module), strict=True):
        for given, node in zip(old.graph.nodes, new.graph.nodes, strict=True):
            node.name = given.name
    return module


def _idle(module: fx.GraphModule) -> list[fx.Node]:
    nodes = [node for inner in all_graphs(module) for node in inner.graph.nodes if node.target in _DROPOUTS]
    return [node for node in nodes if node.args[1] == 0 or node.args[2] is False]


def all_graphs(module: fx.GraphModule) -> list[fx.GraphModule]:
    """The graph, and those of its branches and loops."""
    return [inner for inner in module.modules() if isinstance(inner, fx.GraphModule)]
