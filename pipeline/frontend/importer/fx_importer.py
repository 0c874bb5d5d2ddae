"""FX graph → MLIR's torch dialect: torch-mlir's FxImporter with our locations and control flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch_mlir.extras import fx_importer

from pipeline.errors import LoweringError, PipelineError, UnsupportedOpError
from pipeline.frontend.decompositions.random_op import draws_numbers
from pipeline.frontend.fx_passes.source_lines import module_path, source_line
from pipeline.frontend.importer.higher_order_ops import NodeImporter
from pipeline.frontend.importer.module_paths import place_of
from pipeline.frontend.node_places import is_asked, tell
from pipeline.mlir import ir
from pipeline.runtime.interface.signature import BYTES, DTYPE_BYTES

#: Of what torch-mlir can say a type that LLVM has.
_DTYPES = {getattr(torch, name) for name in DTYPE_BYTES if name not in BYTES}

#: Narrower integers are pooled as floats, see `pipeline.frontend.decompositions.replacements`.
_MAX_POOLS = (
    torch.ops.aten.max_pool2d_with_indices.default,
    torch.ops.aten.max_pool3d_with_indices.default,
)


class _Locations(fx_importer.ContextCache):
    """Locations that name the line of the user's source, the module, then the FX node."""

    graph: fx.Graph | None = None  # the graph that is being imported, without those of its branches and loops
    node: fx.Node | None = None  # the node of it that is

    def get_node_location(self, node: fx.Node) -> ir.Location:
        if node.graph is self.graph:
            self.node = node
        if node.op not in ("placeholder", "output") and is_asked():
            tell(place_of(node, target_name(node)))
        return node_location(node, self._c)


class GraphImporter(fx_importer.FxImporter):
    """Imports functional FX graphs into one module."""

    def __init__(self, context: ir.Context):
        super().__init__(context=context, config_check=False, graph_node_importer_cls=NodeImporter)
        self._cc = _Locations(context, py_attr_tracker=self._py_attr_tracker)


def import_graph(graph: fx.Graph, context: ir.Context, name: str = "main") -> ir.Module:
    """Imports `graph` as the function `name` on torch value tensors; placeholders are arguments in order.

    Raises:
        UnsupportedOpError: the graph has ops that the importer does not know, such as scan, that would crash it, or
            that it gives up on.
        LoweringError: torch-mlir gives up on the graph.
    """
    _refuse(graph)
    importer = GraphImporter(context)
    importer._cc.graph = graph
    try:
        function = importer.import_stateless_graph(graph, func_name=name)
    except PipelineError:
        raise
    except Exception as error:  # the importer raises whatever Python does
        raise _import_error(importer._cc.node, error) from error
    # Without it every dynamic broadcast gets a cf.assert, which would abort the process when it fails; torch.export has
    # proved these already (and the runtime checks its symbols at the call).
    function.attributes["torch.assume_strict_symbolic_shapes"] = ir.UnitAttr.get(context)
    return importer.module


def _import_error(node: fx.Node | None, error: Exception) -> PipelineError:
    """What the importer raised at `node`, as an error that names the op."""
    reason = f"torch-mlir could not import it: {type(error).__name__}: {error}"
    if node is None or node.op != "call_function":
        return LoweringError(f"the model could not be imported: {reason}")
    line = source_line(node)
    return UnsupportedOpError([(target_name(node), f"{line[0]}:{line[1]}" if line else None, reason)], [node.name])


def target_name(node: fx.Node) -> str:
    """What a node calls: `aten.foo.default`, the name of a branch or loop, that of a function."""
    target = node.target
    name = target.name().replace("::", ".") if hasattr(target, "name") else getattr(target, "__name__", str(target))
    return str(name)


def _refuse(graph: fx.Graph) -> None:
    refused = []
    nodes = []
    for node in graph.nodes:
        reason = _reason_to_refuse(node)
        if reason is not None:
            line = source_line(node)
            refused.append((target_name(node), f"{line[0]}:{line[1]}" if line else None, reason))
            nodes.append(node.name)
    if refused:
        raise UnsupportedOpError(refused, nodes)


def _reason_to_refuse(node: fx.Node) -> str | None:
    """Why `node` must not reach torch-mlir: it would not know it, or crash the process; None if it may."""
    if isinstance(node.target, HigherOrderOperator) and not hasattr(NodeImporter, f"_import_hop_{node.target.name()}"):
        return "is not supported yet"
    kinds = sorted(
        {str(tensor.dtype).removeprefix("torch.") for tensor in _tensors(node) if tensor.dtype not in _DTYPES}
    )
    if kinds:
        return f"{' and '.join(kinds)} tensors are not supported"
    if node.target is torch.ops.aten.index.Tensor and any(map(_is_mask, node.args[1])):
        return "selects by a mask, which is not supported yet"  # torch-mlir takes all memory for masks of two dims
    if draws_numbers(node.target) and node.target.namespace == "aten":
        return "draws PyTorch's own random numbers"
    if node.target in _MAX_POOLS and not node.args[0].meta["val"].is_floating_point():
        return "is not supported for int64, take int32 or floats"
    return None


def _tensors(node: fx.Node) -> Iterator[torch.Tensor]:
    """What a node gives, as far as that are tensors."""
    value = node.meta.get("val")
    for result in value if isinstance(value, (tuple, list)) else [value]:
        if isinstance(result, torch.Tensor):
            yield result


def _is_mask(index: Any) -> bool:
    value = index.meta.get("val") if isinstance(index, fx.Node) else index
    return isinstance(value, torch.Tensor) and value.dtype in (torch.bool, torch.uint8)


def node_location(node: fx.Node, context: ir.Context) -> ir.Location:
    """`"node"("op"(fused<"module">["file.py":12:0]))`, without what torch does not know.

    That may be the op that the model calls, the module of the model that calls it, and the line.
    """
    line, module, called = source_line(node), module_path(node), _called_op(node)
    child = None if line is None else ir.Location.file(line[0], line[1], 0, context=context)
    if module is not None:
        place = child or ir.Location.unknown(context)
        child = ir.Location.fused([place], ir.StringAttr.get(module, context), context=context)
    if called is not None:
        child = ir.Location.name(called, child, context=context)
    return ir.Location.name(node.name, child, context=context)


def _called_op(node: fx.Node) -> str | None:
    """The op that the model calls and that `node` is a part of, e.g. `softmax`, as torch.export notes it."""
    noted = node.meta.get("torch_fn")
    return noted[1].rpartition(".")[2].strip("_") if noted else None
