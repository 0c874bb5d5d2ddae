"""FX graph → module: what each placeholder and output is, then import and lowering to linalg.

`GraphReader` has what ExportedPrograms and torch.compile's graphs share; `from_graph` reads the latter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from pipeline import timing
from pipeline.errors import CaptureError, PipelineError
from pipeline.frontend.graph_passes import simplify
from pipeline.frontend.importer import import_graph
from pipeline.frontend.to_linalg import lower_to_linalg
from pipeline.mlir import context, function, ir
from pipeline.program import Dump, Program
from pipeline.runtime.pytree import LEAF, Tree
from pipeline.runtime.signature import DTYPE_BYTES, Argument, Mutation, Result, Signature, TensorType, Weight


def from_graph(
    graph: fx.Graph,
    dump: Dump,
    weights: Mapping[str, str],
    live: Mapping[str, torch.Tensor],
    mutated: Sequence[str],
) -> Program:
    """The Program of a functional graph, such as aot_autograd's: it takes and returns flat lists.

    Args:
        graph: changed in place.
        dump: sees the module after the stages `torch` and `linalg`.
        weights: the names in the model of the placeholders that are weights.
        live: the weights, by their names in the model.
        mutated: the placeholders that are written to; their new values are the graph's first outputs.
    """
    reader = GraphReader(graph, set(mutated))
    for node in [node for node in graph.nodes if node.op == "placeholder"]:
        if node.name in weights:
            name = weights[node.name]
            reader.read_weight(name, live[name], node.name in mutated)
        else:
            reader.read_argument(node, f"args[{len(reader.arguments)}]", node.meta.get("val"))
    written = zip(mutated, reader.outputs, strict=False)
    mutations = tuple(_mutation(reader, weights, name, value) for name, value in written)
    results = tuple(map(reader.read_result, reader.outputs[len(mutated) :]))
    signature = Signature(
        arguments=tuple(reader.arguments),
        argument_tree=Tree("tuple", (Tree("tuple", (LEAF,) * len(reader.arguments)), Tree("dict"))),
        parameters=(),
        results=results,
        result_tree=Tree("tuple", (LEAF,) * len(results)),
        weights=tuple(reader.weight_types),
        mutations=mutations,
    )
    mutable = {weight.name for weight in signature.weights if weight.mutated}
    return Program(reader.module(dump, mutable), signature, reader.weights)


def _mutation(reader: GraphReader, weights: Mapping[str, str], name: str, value: fx.Node) -> Mutation:
    """What is written to the placeholder `name`."""
    number = reader.result_number(value)
    if name in weights:
        return Mutation(number, weight=weights[name])
    return Mutation(number, argument=reader.argument_index[name])


class GraphReader:
    """Works out the roles of a graph's placeholders and outputs, erases those that the program doesn't take, imports.

    Attributes:
        arguments: what has been read with `read_argument`.
        argument_index: the number of each, by its placeholder's name.
        weights, weight_types: what has been read with `read_weight`.
        sources: the mark of each argument of `@main`, in order.
        outputs: the graph's output values.
    """

    def __init__(self, graph: fx.Graph, mutated: set[str]):
        self.graph = graph
        self.nodes = {node.name: node for node in graph.nodes}
        self.mutated = mutated
        self.arguments: list[Argument] = []
        self.argument_index: dict[str, int] = {}
        self.weights: dict[str, Any] = {}
        self.weight_types: list[Weight] = []
        self.sources: list[tuple[str, int | str]] = []
        self.outputs: list[Any] = list(next(node for node in graph.nodes if node.op == "output").args[0])
        self._results: dict[Any, int] = {}

    def read_argument(self, node: fx.Node, path: str, constant: Any) -> None:
        """Takes a placeholder for the next argument of the call; `constant` is its value if it is no tensor or int."""
        index = len(self.arguments)
        self.argument_index[node.name] = index
        value = node.meta.get("val")
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            raise CaptureError(f"argument {path}: dynamic floats and bools are not supported, pass a tensor")
        if isinstance(value, torch.Tensor):
            kind = tensor_type(value, f"argument {path}")
            self.arguments.append(Argument(path, "tensor", kind, mutated=node.name in self.mutated))
        elif isinstance(value, torch.SymInt):
            self.arguments.append(Argument(path, "int", value=str(value.node.expr)))
        else:
            self.arguments.append(Argument(path, "constant", value=constant))
            self.graph.erase_node(node)
            return
        self.sources.append(("pipeline.argument", index))

    def read_weight(self, name: str, tensor: torch.Tensor, mutated: bool) -> None:
        """Takes a placeholder for the next weight: the tensor that the model calls `name`."""
        self.weights[name] = tensor
        self.weight_types.append(Weight(name, tensor_type(tensor, f"weight {name}"), mutated))
        self.sources.append(("pipeline.weight", name))

    def read_result(self, value: Any) -> Result:
        """What an output of the graph is to the caller."""
        if not isinstance(value, fx.Node):
            return Result("constant", value=_plain(value))
        if value.name in self.argument_index:
            return Result("argument", self.argument_index[value.name])
        meta = value.meta["val"]
        if isinstance(meta, torch.Tensor):
            return Result("computed", self.result_number(value), tensor_type(meta, f"result {value.name}"))
        if isinstance(meta, (int, torch.SymInt)) and not isinstance(meta, bool):
            return Result("computed", self.result_number(value))
        raise CaptureError(f"result {value.name}: a {type(meta).__name__} cannot be returned, return a tensor")

    def result_number(self, value: fx.Node) -> int:
        """The number of the result of `@main` that a node becomes."""
        return self._results.setdefault(value, len(self._results))

    def module(self, dump: Dump, mutable: set[str]) -> ir.Module:
        """Imports the graph as read; `mutable` are the names of the weights that it writes to."""
        output = next(node for node in self.graph.nodes if node.op == "output")
        output.args = (tuple(self._results),)
        with timing.stage("to torch dialect"):
            simplify(self.graph)
            module = import_graph(self.graph, context())
        with timing.stage("to linalg"):
            lower_to_linalg(module, dump)
        self._mark_arguments(module, mutable)
        dump("linalg", module)
        return module

    def _mark_arguments(self, module: ir.Module, mutable: set[str]) -> None:
        with module.context:
            marks = []
            for kind, which in self.sources:
                mark: dict[str, ir.Attribute] = {}
                if isinstance(which, int):
                    mark[kind] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), which)
                else:
                    mark[kind] = ir.StringAttr.get(which)
                    if which in mutable:
                        mark["pipeline.mutable"] = ir.UnitAttr.get()
                marks.append(ir.DictAttr.get(mark))
            function(module, "main").attributes["arg_attrs"] = ir.ArrayAttr.get(marks)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CaptureError(f"result {value!r}: only tensors, numbers, strings and None can be returned")


def tensor_type(value: torch.Tensor, what: str) -> TensorType:
    """The type of a (fake) tensor; raises `PipelineError` for a dtype or layout that pipeline doesn't have."""
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPE_BYTES or value.layout != torch.strided:
        kind = dtype if value.layout == torch.strided else str(value.layout).removeprefix("torch.")
        raise PipelineError(f"{what}: {kind} tensors are not supported, use one of {', '.join(DTYPE_BYTES)}")
    if value.device.type not in ("cpu", "meta"):
        raise PipelineError(f"{what}: is on {value.device}, expected cpu")
    return TensorType(dtype, tuple(_size(size) for size in value.shape))


def _size(size: Any) -> int | str:
    if isinstance(size, torch.SymInt):
        expression = size.node.expr
        return int(expression) if expression.is_number else str(expression)
    return int(size)
