"""FX graph → module: what each placeholder and output is, then import and lowering to linalg.

`GraphReader` has what ExportedPrograms and torch.compile's graphs share; `from_graph` reads the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from pipeline import timing
from pipeline.errors import CaptureError, PipelineError, UnsupportedOpError, UnsupportedTypeError
from pipeline.frontend.capture.capture_errors import cause, first_line
from pipeline.frontend.capture.uneven_groups import uneven_indices
from pipeline.frontend.fx_passes.simplify import simplify
from pipeline.frontend.importer.fx_importer import import_graph
from pipeline.frontend.importer.random_lowering import seed_marks
from pipeline.frontend.importer.result_layouts import Permutation, as_computed
from pipeline.frontend.importer.supervised_lowering import lower_supervised
from pipeline.frontend.importer.update_marks import update_marks
from pipeline.frontend.numbers.boxes import box_result, is_number, value_of
from pipeline.frontend.shapes.promises import Promises
from pipeline.ir.attributes import ARGUMENT, MUTABLE, UNEVEN, WEIGHT
from pipeline.mlir import context, context_for, function, ir
from pipeline.program import Dump, Program
from pipeline.runtime.interface.pytree import LEAF, Tree
from pipeline.runtime.interface.signature import DTYPE_BYTES, Argument, Mutation, Result, Signature, TensorType, Weight

#: The type of a (fake) tensor; the text says what it is, for errors.
TypeOf = Callable[[torch.Tensor, str], TensorType]

#: What a node was called before the graph was simplified, as nodes that are made of it say, too.
_ORIGIN = "pipeline_origin"


@dataclass(frozen=True)
class CapturedGraph:
    """A functional graph that has been read and not yet been imported.

    Attributes:
        reader: has the graph, and says what its placeholders and outputs are.
        weights: the live tensors of the model, by name.
    """

    reader: GraphReader
    signature: Signature
    weights: Mapping[str, Any] = field(default_factory=dict)

    def program(self, dump: Dump) -> Program:
        """Imports it; the graph is used up. `dump` sees the module after the stages `torch` and `linalg`."""
        module = self.reader.module(dump, self.signature)
        return Program(module, with_least_sizes(self.signature, self.reader.raised), self.weights)


def read_graph(
    reader: GraphReader,
    weights: Mapping[str, str] = MappingProxyType({}),
    live: Mapping[str, torch.Tensor] = MappingProxyType({}),
    mutated: Sequence[str] = (),
) -> CapturedGraph:
    """Reads a functional graph that takes and returns flat lists, such as aot_autograd's.

    Args:
        reader: of the graph.
        weights: the names in the model of the placeholders that are weights.
        live: the weights, by their names in the model.
        mutated: the placeholders that are written to; their new values are the graph's first outputs.
    """
    for node in reader.placeholders:
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
    return CapturedGraph(reader, signature, reader.weights)


def _mutation(reader: GraphReader, weights: Mapping[str, str], name: str, value: fx.Node) -> Mutation:
    """What is written to the placeholder `name`."""
    number = reader.result_number(value)
    if name in weights:
        return Mutation(number, weight=weights[name])
    return Mutation(number, argument=reader.argument_index[name])


def with_least_sizes(signature: Signature, raised: Mapping[str, int]) -> Signature:
    """The signature with ranges of symbols that begin at the least values of `raised`, where those are greater."""
    ranges = {symbol: (least, greatest) for symbol, least, greatest in signature.ranges}
    for symbol, wanted in raised.items():
        least, greatest = ranges.get(symbol, (0, 2**63 - 1))
        ranges[symbol] = (max(least, wanted), greatest)
    return replace(signature, ranges=tuple((symbol, *bounds) for symbol, bounds in ranges.items()))


class GraphReader:
    """Works out the roles of a graph's placeholders and outputs, erases those that the program doesn't take, imports.

    Attributes:
        arguments: what has been read with `read_argument`.
        argument_index: the number of each, by its placeholder's name.
        weights, weight_types: what has been read with `read_weight`.
        sources: the mark of each argument of `@main`, in order.
        outputs: the graph's output values.
        raised: after `module`, the least values of symbols that a call needs beyond those in `ranges`, by name.
        type_of: what a tensor is to the program; by default `tensor_type`.
        written_elsewhere: the names of weights that other programs write to.
    """

    written_elsewhere: frozenset[str] = frozenset()

    def __init__(self, graph: fx.Graph, mutated: set[str], type_of: TypeOf | None = None):
        self.graph = graph
        self.nodes = {node.name: node for node in graph.nodes}
        self.mutated = mutated
        self.type_of = type_of or tensor_type
        self.arguments: list[Argument] = []
        self.argument_index: dict[str, int] = {}
        self.weights: dict[str, Any] = {}
        self.weight_types: list[Weight] = []
        self.sources: list[tuple[str, int | str]] = []
        self.outputs: list[Any] = list(next(node for node in graph.nodes if node.op == "output").args[0])
        self.raised: dict[str, int] = {}
        self._results: dict[Any, int] = {}
        self._layouts: dict[fx.Node, tuple[fx.Node, Permutation | None]] = {}

    def read_argument(self, node: fx.Node, path: str, constant: Any) -> None:
        """Takes a placeholder for the next argument of the call; `constant` is its value if it is no tensor or int."""
        index = len(self.arguments)
        self.argument_index[node.name] = index
        value = node.meta.get("val")
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            raise CaptureError(f"argument {path}: dynamic floats and bools are not supported, pass a tensor")
        if isinstance(value, torch.Tensor):
            kind = self.type_of(value, f"argument {path}")
            self.arguments.append(Argument(path, "tensor", kind, mutated=node.name in self.mutated))
        elif isinstance(value, torch.SymInt):
            self.arguments.append(Argument(path, "int", value=str(value.node.expr)))
        else:
            self.arguments.append(Argument(path, "constant", value=constant))
            self.graph.erase_node(node)
            return
        self.sources.append((ARGUMENT, index))

    def read_weight(self, name: str, tensor: torch.Tensor, mutated: bool) -> None:
        """Takes a placeholder for the next weight: the tensor that the model calls `name`."""
        self.weights[name] = tensor
        self.weight_types.append(Weight(name, self.type_of(tensor, f"weight {name}"), mutated))
        self.sources.append((WEIGHT, name))

    def read_result(self, value: Any) -> Result:
        """What an output of the graph is to the caller."""
        if not isinstance(value, fx.Node):
            return Result("constant", value=_plain(value))
        if value.name in self.argument_index:
            return Result("argument", self.argument_index[value.name])
        meta = value.meta["val"]
        if isinstance(meta, torch.Tensor):
            kind = self.type_of(meta, f"result {value.name}")
            if value not in self._layouts:  # a result that is there twice is one tensor
                self._layouts[value] = as_computed(value, self.outputs)
            computed, permutation = self._layouts[value]
            return Result("computed", self.result_number(computed), kind, permutation=permutation)
        if isinstance(meta, (int, torch.SymInt)) and not isinstance(meta, bool):
            return Result("computed", self.result_number(value))
        if is_number(meta):
            boxed = box_result(value)
            return Result("number", self.result_number(boxed), tensor_type(value_of(boxed), f"result {value.name}"))
        raise CaptureError(f"result {value.name}: a {type(meta).__name__} cannot be returned, return a tensor")

    @property
    def placeholders(self) -> list[fx.Node]:
        """Those that are arguments of the call."""
        return [node for node in self.graph.nodes if node.op == "placeholder"]

    @property
    def computed(self) -> list[fx.Node]:
        """The nodes that are results of `@main`, by number."""
        return list(self._results)

    def result_number(self, value: fx.Node) -> int:
        """The number of the result of `@main` that a node becomes."""
        return self._results.setdefault(value, len(self._results))

    def ranges(self) -> dict[str, tuple[int, int]]:
        """The least and the greatest size that symbols stand for, by their names."""
        return {}

    def module(self, dump: Dump, signature: Signature) -> ir.Module:
        """Imports the graph as read; `signature` is what has been read."""
        output = next(node for node in self.graph.nodes if node.op == "output")
        output.args = (tuple(self._results),)
        for node in self.graph.nodes:
            node.meta[_ORIGIN] = node.name
        try:
            with timing.stage("to torch dialect"):
                module = self._imported()
            with timing.stage("to linalg"):
                promises = Promises.of_graph(self.graph, self.ranges())
                module, self.raised = lower_supervised(module, dump, promises)
        except UnsupportedOpError as error:
            error.nodes = self._originals(error.nodes)
            raise
        self._mark_arguments(module, signature)
        dump("linalg", module)
        return module

    def _imported(self) -> ir.Module:
        try:
            simplify(self.graph)
            is_alone = _has_constants(self.graph)
            return import_graph(self.graph, context() if is_alone else context_for(len(self.graph.nodes)))
        except PipelineError:
            raise
        except Exception as error:  # torch and the importer raise many types
            raise CaptureError(f"the captured graph could not be imported: {first_line(error)}") from cause(error)

    def _originals(self, names: frozenset[str]) -> frozenset[str]:
        """The names that nodes had before the graph was simplified."""
        origins = {node.name: node.meta.get(_ORIGIN, node.name) for node in self.graph.nodes}
        return frozenset(origins.get(name, name) for name in names)

    def _mark_arguments(self, module: ir.Module, signature: Signature) -> None:
        mutable = self.written_elsewhere | {weight.name for weight in signature.weights if weight.mutated}
        uneven = uneven_indices(self.weights)
        main = function(module, "main")
        with module.context:
            marks = []
            for kind, which in self.sources:
                mark: dict[str, ir.Attribute] = {}
                if isinstance(which, int):
                    mark[kind] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), which)
                else:
                    mark[kind] = ir.StringAttr.get(which)
                    if which in mutable:
                        mark[MUTABLE] = ir.UnitAttr.get()
                    if which in uneven:
                        mark[UNEVEN] = ir.UnitAttr.get()
                marks.append(ir.DictAttr.get(mark | update_marks(main, signature, which)))
            main.attributes["arg_attrs"] = ir.ArrayAttr.get([*marks, *seed_marks(main, len(marks))])


def _has_constants(graph: fx.Graph) -> bool:
    """Whether a graph reads tensors of its own, which a context keeps, by names that are numbered in it."""
    return any(
        node.op == "get_attr" or any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves((node.args, node.kwargs)))
        for node in graph.nodes
    )


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CaptureError(f"result {value!r}: only tensors, numbers, strings and None can be returned")


def tensor_type(value: torch.Tensor, what: str) -> TensorType:
    """The type of a (fake) tensor; raises `UnsupportedTypeError` for a dtype or layout that pipeline doesn't have."""
    if not has_type(value):
        kind = str(value.dtype if value.layout == torch.strided else value.layout).removeprefix("torch.")
        raise UnsupportedTypeError(f"{what}: {kind} tensors are not supported, use one of {', '.join(DTYPE_BYTES)}")
    if value.device.type not in ("cpu", "meta"):
        raise PipelineError(f"{what}: is on {value.device}, expected cpu")
    return any_type(value, what)


def has_type(value: torch.Tensor) -> bool:
    """Whether compiled code can take or give such a tensor."""
    return str(value.dtype).removeprefix("torch.") in DTYPE_BYTES and value.layout == torch.strided


def any_type(value: torch.Tensor, what: str) -> TensorType:
    """Likewise, of any dtype: of what no compiled code sees."""
    return TensorType(str(value.dtype).removeprefix("torch."), tuple(_size(size) for size in value.shape))


def _size(size: Any) -> int | str:
    if isinstance(size, torch.SymInt):
        expression = size.node.expr
        return int(expression) if expression.is_number else str(expression)
    return int(size)
