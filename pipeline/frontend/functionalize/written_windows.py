"""Windows of `unfold` in memory that is written to, which leave some of it out: they are as_strided instead.

torch functionalizes a write to them by the gradient of unfold, which has zeros where no window is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_and

from pipeline.frontend.functionalize.idle_dropouts import all_graphs, copy_of_graph
from pipeline.frontend.functionalize.region_aliases import refusal
from pipeline.frontend.functionalize.schema_aliases import root, written

aten = torch.ops.aten

_UNFOLD = aten.unfold.default

#: What it is called in graphs of dynamo's.
_METHOD = "unfold"

_REASON = (
    "this looks at windows of memory that is written to, of a size that is not known, and torch.export sets what lies "
    "in no window to 0; write to a clone of the windows"
)


def stride_written_windows(exported: ExportedProgram) -> ExportedProgram:
    """unfold(x, dim, size, step)  →  as_strided(x, shape, strides) in all graphs, where x is written to.

    Raises:
        CaptureError: of sizes that are not known.
    """
    if not any(map(_written_windows, all_graphs(exported.graph_module))):
        return exported
    module = copy_of_graph(exported)
    for inner in all_graphs(module):
        for node in _written_windows(inner):
            node.target, node.args, node.kwargs = aten.as_strided.default, _places(node, node.meta["val"]), {}
        inner.recompile()
    return exported._update(module, exported.graph_signature)


def stride_written_windows_of_dynamo(module: fx.GraphModule) -> None:
    """Likewise in a graph of dynamo's, which is changed."""
    for node in module.graph.find_nodes(op="call_method", target=_METHOD):
        windows = node.meta["example_value"]
        if windows._version and _leaves_some_out(node, node.args[0].meta["example_value"]):
            node.op, node.target, node.args, node.kwargs = "call_function", torch.as_strided, _places(node, windows), {}
    module.recompile()


def _written_windows(module: fx.GraphModule) -> list[fx.Node]:
    windows = module.graph.find_nodes(op="call_function", target=_UNFOLD)
    owners = {root(value) for node in module.graph.nodes for value in written(node)} if windows else set()
    some = [node for node in windows if _leaves_some_out(node, node.args[0].meta["val"])]
    return [node for node in some if root(node) in owners]


def _leaves_some_out(call: fx.Node, whole: torch.Tensor) -> bool:
    """Whether there are elements in no window, or may be."""
    dim, size, step = _numbers(*call.args, **call.kwargs)
    if not whole.dim() or step == 1:
        return False
    return not statically_known_true(sym_and(step <= size, (whole.size(dim) - size) % step == 0))


def _numbers(_whole: fx.Node, dimension: int, size: Any, step: Any) -> tuple[int, Any, Any]:
    return dimension, size, step


def _places(node: fx.Node, windows: torch.Tensor) -> tuple[Any, ...]:
    """The arguments of as_strided."""
    shape, strides = tuple(windows.shape), tuple(windows.stride())
    if any(isinstance(number, torch.SymInt) for number in (*shape, *strides)):
        raise refusal(node, _REASON)
    return node.args[0], shape, strides
