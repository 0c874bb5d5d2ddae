"""What a call computes of a functional graph: the values that nobody has yet, as a graph of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from pipeline.frontend.dynamo.kept_graph import KeptGraph, KeptGraphSource
from pipeline.frontend.dynamo.outputs import OutputPlan, plan_outputs
from pipeline.frontend.sources import GraphSource
from pipeline.program import ProgramSource


@dataclass(frozen=True)
class CalledPart:
    """Part of a graph, and how calls of the whole go to it.

    Attributes:
        graph: the part.
        plan: how a call's outputs are made.
        inputs: the number among the whole's inputs, and the name in the part, of each input that it takes.
        written: the names of those that it writes to; their new values are its first outputs.
    """

    graph: fx.GraphModule | KeptGraph
    plan: OutputPlan
    inputs: tuple[tuple[int, str], ...]
    written: tuple[str, ...]

    @staticmethod
    def of(
        graph: fx.GraphModule,
        outputs: Sequence[Any],
        mutated: Sequence[tuple[int, fx.Node]] = (),
        own: Collection[int] = (),
        detached: Collection[int] = (),
    ) -> CalledPart:
        """What computes some values of a graph.

        Args:
            graph: functional; its own output does not matter.
            outputs: the values of the graph that a call returns.
            mutated: the number and the new value of each input that a call writes to.
            own: the numbers of the outputs that lie in no input's memory.
            detached: the numbers of those that autograd does not know as views.
        """
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        numbers = {node: number for number, node in enumerate(placeholders)}
        lies_in = {**numbers, **{value: number for number, value in mutated if value not in numbers}}
        plan, results = plan_outputs(outputs, lies_in, own, detached)
        targets = [placeholders[number] for number, _ in mutated]
        module, kept = _part(graph, [*(value for _, value in mutated), *results], targets)
        inputs = tuple((numbers[node], name) for node, name in kept)
        written = tuple(name for target, _ in mutated for number, name in inputs if number == target)
        return CalledPart(module, plan, inputs, written)

    def kept(self) -> CalledPart | None:
        """The same with the graph as bytes; None of a graph that has no digest."""
        graph = self.graph if isinstance(self.graph, KeptGraph) else KeptGraph.of(self.graph)
        return None if graph is None else replace(self, graph=graph)

    def source(self, weights: Mapping[str, str], live: Callable[[], Mapping[str, torch.Tensor]]) -> ProgramSource:
        """The part as what can be compiled; `weights` and `live` as of `GraphSource`."""
        if isinstance(self.graph, KeptGraph):
            return KeptGraphSource(self.graph, weights, live, self.written)
        return GraphSource(self.graph, weights, live, self.written)


def _part(
    graph: fx.GraphModule, outputs: Sequence[fx.Node], mutated: Sequence[fx.Node]
) -> tuple[fx.GraphModule, list[tuple[fx.Node, str]]]:
    """What computes `outputs`, and (placeholder of `graph`, name in the part) of each input that it takes.

    Inputs that it only writes to are among them, and all numbers: sizes of tensors are written in them. What stands for
    the lengths of a jagged tensor's rows is no number, and no size of what it consists of.
    """
    part = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    part.graph_copy(graph.graph, copies)
    part.output(tuple(copies[node] for node in outputs))
    part.eliminate_dead_code()
    kept = []
    for node in graph.graph.nodes:
        if node.op != "placeholder":
            continue
        value = node.meta.get("val")
        if copies[node].users or node in mutated or not isinstance(value, torch.Tensor) and not _is_jagged(value):
            kept.append((node, copies[node].name))
        else:
            part.erase_node(copies[node])
    with unset_fake_temporarily():
        return fx.GraphModule(graph, part), kept


def _is_jagged(value: Any) -> bool:
    return isinstance(value, torch.SymInt) and value.node.is_nested_int()
