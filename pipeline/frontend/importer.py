"""FX graph → MLIR's torch dialect: torch-mlir's FxImporter with our locations."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch_mlir.extras import fx_importer

from pipeline.errors import UnsupportedOpError
from pipeline.mlir import ir

_TORCH = str(Path(torch.__file__).parent)


class _Locations(fx_importer.ContextCache):
    """Locations that name the innermost line of the user's source, then the FX node."""

    def get_node_location(self, node: fx.Node) -> ir.Location:
        return node_location(node, self._c)


class GraphImporter(fx_importer.FxImporter):
    """Imports functional FX graphs into one module."""

    def __init__(self, context: ir.Context):
        super().__init__(context=context, config_check=False)
        self._cc = _Locations(context, py_attr_tracker=self._py_attr_tracker)


def import_graph(graph: fx.Graph, context: ir.Context, name: str = "main") -> ir.Module:
    """Imports `graph` as the function `name` on torch value tensors; placeholders are arguments in order.

    Raises:
        UnsupportedOpError: the graph has ops with graphs of their own that the importer does not know, such as cond.
    """
    _refuse_unknown_regions(graph)
    importer = GraphImporter(context)
    function = importer.import_stateless_graph(graph, func_name=name)
    # Without it every dynamic broadcast gets a cf.assert, which would abort the process when it fails; torch.export has
    # proved these already (and the runtime checks its symbols at the call).
    function.attributes["torch.assume_strict_symbolic_shapes"] = ir.UnitAttr.get(context)
    return importer.module


def _refuse_unknown_regions(graph: fx.Graph) -> None:
    unknown = []
    for node in graph.nodes:
        if isinstance(node.target, HigherOrderOperator):
            name = node.target.name()
            if not hasattr(fx_importer.GraphNodeImporter, f"_import_hop_{name}"):
                line = source_line(node)
                unknown.append((name, f"{line[0]}:{line[1]}" if line else None, "is not supported yet"))
    if unknown:
        raise UnsupportedOpError(unknown)


def node_location(node: fx.Node, context: ir.Context) -> ir.Location:
    """`"node"("file.py":12:0)`, or the name alone where torch kept no stack trace."""
    line = source_line(node)
    if line is None:
        return ir.Location.name(node.name, context=context)
    child = ir.Location.file(line[0], line[1], 0, context=context)
    return ir.Location.name(node.name, child, context=context)


def source_line(node: fx.Node) -> tuple[str, int] | None:
    """(file, line) of the innermost line of the model's source that made `node`."""
    trace = node.meta.get("stack_trace") or ""
    frames = re.findall(r'File "([^"<]+)", line (\d+)', trace)  # the names of generated code are in <>
    own = [frame for frame in frames if not frame[0].startswith(_TORCH)] or frames
    return (own[-1][0], int(own[-1][1])) if own else None
