"""A part of a graph as a source of a Program: what it reads are arguments and weights, what others read its results."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from pipeline.frontend.capture.fingerprint import graph_fingerprint
from pipeline.frontend.fallback.partition import is_given
from pipeline.frontend.fallback.sizes import arguments_for_sizes
from pipeline.frontend.importer.graph_reader import CapturedGraph, GraphReader, TypeOf, read_graph, tensor_type
from pipeline.ir.attributes import WEIGHT
from pipeline.program import Dump, Program, ProgramSource
from pipeline.runtime.interface.signature import Argument, Signature, TensorType, Weight


@dataclass(frozen=True)
class GraphPart(ProgramSource):
    """A part of a graph.

    Attributes:
        module: the part's own graph: a placeholder for each of `inputs`, then one for each of the weights.
        inputs: the nodes of the whole graph that it takes, in order.
        outputs: the nodes of the whole graph that it gives, in order.
        weights: the live tensors by the names of the weights, in order.
        origins: the nodes of the whole graph by what they are called in the part.
    """

    module: fx.GraphModule
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]
    weights: Mapping[str, Any]
    origins: Mapping[str, fx.Node]

    def program(self, dump: Dump) -> Program:
        """Imports it."""
        module = copy.deepcopy(self.module)
        return self._read(_PartReader(module.graph, len(self.inputs), self.weights, tensor_type)).program(dump)

    def captured(self, type_of: TypeOf) -> CapturedGraph:
        """Reads it."""
        module = copy.deepcopy(self.module)
        return self._read(_PartReader(module.graph, len(self.inputs), self.weights, type_of))

    def _read(self, reader: _PartReader) -> CapturedGraph:
        captured = read_graph(reader)
        signature = replace(captured.signature, weights=tuple(reader.weight_types))
        return CapturedGraph(reader, _with_plain_symbols(signature), self.weights)

    def fingerprint(self) -> str | None:
        """See `graph_fingerprint`."""
        graph = graph_fingerprint(self.module, {}, ())
        return None if graph is None else "\n".join([graph, "weights", *self.weights])

    def tensors(self) -> Mapping[str, Any]:
        """The weights."""
        return self.weights


class _PartReader(GraphReader):
    """Reads the graph of a part: the placeholders behind its inputs are weights."""

    def __init__(self, graph: fx.Graph, inputs: int, weights: Mapping[str, Any], type_of: TypeOf):
        super().__init__(graph, set(), type_of)
        self._inputs = inputs
        self._names = list(weights)
        self.weight_types = [Weight(name, type_of(tensor, f"weight {name}")) for name, tensor in weights.items()]

    @property
    def placeholders(self) -> list[fx.Node]:
        """The inputs."""
        return super().placeholders[: self._inputs]

    def module(self, dump: Dump, signature: Signature) -> Any:
        """Imports the graph, with the weights behind the arguments."""
        self.sources += [(WEIGHT, name) for name in self._names]
        return super().module(dump, signature)


def cut(
    nodes: Sequence[fx.Node],
    read_elsewhere: Collection[fx.Node],
    weights: Mapping[fx.Node, str],
    tensors: Mapping[str, Any],
    root: torch.nn.Module,
) -> GraphPart:
    """The part that `nodes` are.

    Args:
        nodes: in the order of the graph.
        read_elsewhere: nodes of the graph that others read, some of them of the part.
        weights: the names of the weights by their placeholders.
        tensors: the live tensors by these names.
        root: what the graph's attributes are looked up in.
    """
    graph = fx.Graph()
    inside = set(nodes)
    taken = list(dict.fromkeys(operand for node in nodes for operand in node.all_input_nodes if operand not in inside))
    own = [operand for operand in taken if operand in weights]
    made = [operand for operand in taken if is_given(operand) and operand.op != "placeholder"]
    inputs = [operand for operand in taken if operand not in {*own, *made}]
    inputs += arguments_for_sizes(nodes, inputs)
    known: dict[fx.Node, fx.Node] = {}
    for node in [*inputs, *own]:
        known[node] = graph.placeholder(node.name)
        known[node].meta = dict(node.meta)
    for node in [*made, *nodes]:
        known[node] = graph.node_copy(node, known.__getitem__)
    outputs = [node for node in nodes if node in read_elsewhere]
    graph.output(tuple(known[node] for node in outputs))
    used = {weights[node]: tensors[weights[node]] for node in own}
    origins = {copied.name: node for node, copied in known.items()}
    return GraphPart(fx.GraphModule(root, graph), tuple(inputs), tuple(outputs), used, origins)


def _with_plain_symbols(signature: Signature) -> Signature:
    """Gives each size that is an expression a symbol of its own: a part may not see what it is made of."""
    names: dict[str, str] = {}

    def plain(size: int | str) -> int | str:
        if isinstance(size, int) or size.isidentifier():
            return size
        return names.setdefault(size, f"size{len(names)}")

    def of(argument: Argument) -> Argument:
        if argument.type is not None:
            return replace(argument, type=TensorType(argument.type.dtype, tuple(map(plain, argument.type.shape))))
        return replace(argument, value=plain(argument.value)) if argument.kind == "int" else argument

    results = tuple(
        result
        if result.type is None
        else replace(result, type=TensorType(result.type.dtype, tuple(map(plain, result.type.shape))))
        for result in signature.results
    )
    return replace(signature, arguments=tuple(map(of, signature.arguments)), results=results)
