"""as_strided of views, which reads memory beyond that of the view: it reads the tensor that has the memory instead.

Functionalization may make a view a tensor of its own, as torch and decompositions do with windows; then there is
nothing beyond it, and what it has lies elsewhere.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from pipeline.frontend.functionalize.idle_dropouts import all_graphs, copy_of_graph
from pipeline.frontend.views.factoring import polynomial
from pipeline.frontend.views.symbolic_sizes import SymbolicSizes

aten = torch.ops.aten

#: As it stands in graphs in ATen, and in dynamo's, which has its name as a method, too.
_AS_STRIDED = (aten.as_strided.default, torch.as_strided)
_METHOD = "as_strided"

#: What it may be given after its tensor: size, strides, and where to begin in memory.
_OFFSET, _OFFSET_NAME = 3, "storage_offset"


def stride_from_owners(exported: ExportedProgram) -> ExportedProgram:
    """as_strided(view of x, size, stride)  →  as_strided(x, size, stride, offset of the view), in all graphs."""
    if not any(map(_of_views, all_graphs(exported.graph_module))):
        return exported
    module = copy_of_graph(exported)
    for inner in all_graphs(module):
        _rewrite(inner)
    return exported._update(module, exported.graph_signature)


def graph_from_owners(graph: fx.GraphModule) -> fx.GraphModule:
    """Likewise of a graph of dynamo's or of aot_autograd's, which is left as it is; its weights are not copied."""
    if not _of_views(graph):
        return graph
    copied = fx.Graph()
    result = copied.graph_copy(graph.graph, {}, return_output_node=True)
    assert isinstance(result, tuple)
    copied.output(result[0]).meta = dict(result[1].meta)
    made = fx.GraphModule(graph, copied)
    _rewrite(made)
    return made


def _of_views(module: fx.GraphModule) -> list[tuple[fx.Node, fx.Node]]:
    """Each as_strided of a view, with the node that has the view's memory."""
    calls = [node for node in module.graph.nodes if node.target in _AS_STRIDED or node.target == _METHOD]
    pairs = [(call, _owner(call.args[0])) for call in calls if call.args and isinstance(call.args[0], fx.Node)]
    return [(call, owner) for call, owner in pairs if owner is not call.args[0]]


def _rewrite(module: fx.GraphModule) -> None:
    for call, owner in _of_views(module):
        view = call.args[0]
        given = call.args[_OFFSET] if len(call.args) > _OFFSET else call.kwargs.get(_OFFSET_NAME)
        if given is None:
            call.update_kwarg(_OFFSET_NAME, _offset(view, call))
            call.args = call.args[:_OFFSET]
        call.update_arg(0, owner)
    module.recompile()


def _offset(view: fx.Node, call: fx.Node) -> Any:
    """Where a view begins in memory: a number, or a node in front of `call` that computes it of sizes."""
    offset = _value(view).storage_offset()
    if isinstance(offset, int):
        return offset
    sizes = SymbolicSizes(call.graph, "val" if "val" in view.meta else "example_value")
    for node in itertools.takewhile(lambda node: node is not call, call.graph.nodes):
        sizes.visit(node)
    with call.graph.inserting_before(call):
        return sizes.size(polynomial(offset), call)


def _owner(node: fx.Node) -> fx.Node:
    """The first of the nodes that a tensor is a view of, through others or not, of those whose elements are as wide."""
    behind = [read for read in _tensors_behind(node) if _share_memory(node, read)]
    return _owner(behind[0]) if behind else node


def _tensors_behind(node: fx.Node) -> list[fx.Node]:
    """The tensors that a node reads; those of what gives it one of several tensors."""
    of_several = [read for read in node.all_input_nodes if isinstance(_value(read), (tuple, list))]
    return node.all_input_nodes if not of_several else of_several[0].all_input_nodes


def _share_memory(node: fx.Node, other: fx.Node) -> bool:
    one, two = _value(node), _value(other)
    if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor):
        return False
    if one.layout != torch.strided or two.layout != torch.strided or one.dtype != two.dtype:
        return False
    return one.untyped_storage()._cdata == two.untyped_storage()._cdata


def _value(node: fx.Node) -> Any:
    return node.meta.get("val", node.meta.get("example_value"))
