"""A functional graph as compiled code, called with dynamo's flat inputs."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from pipeline import logs
from pipeline.compiler import compile_source
from pipeline.frontend.dynamo.bindings import Bindings
from pipeline.frontend.dynamo.outputs import plan_outputs
from pipeline.frontend.sources import GraphSource
from pipeline.options import Options
from pipeline.runtime.executable import Executable
from pipeline.targets import Target

#: Compiles what was captured.
Compile = Callable[[GraphSource], Executable]


def compile_with(options: Options, target: Target) -> Compile:
    """What compiles graphs with these options."""

    def compile_graph(source: GraphSource) -> Executable:
        logs.log("dynamo").info(
            "a graph of %d nodes, %d of them weights", len(source.module.graph.nodes), len(source.weights)
        )
        with unset_fake_temporarily():
            return compile_source(source, options, target)

    return compile_graph


class CompiledGraph:
    """Takes dynamo's inputs, gives the graph's outputs."""

    def __init__(
        self,
        graph: fx.GraphModule,
        outputs: Sequence[Any],
        mutated: Sequence[tuple[int, fx.Node]],
        weights: dict[int, tuple[str, torch.Tensor]],
        own: Collection[int],
        compile_graph: Compile,
    ):
        """Compiles the graph.

        Args:
            graph: functional; its own output does not matter.
            outputs: the values of the graph that a call returns.
            mutated: the number and the new value of each input that a call writes to.
            weights: (name in the model, tensor) by the numbers of the inputs that are the model's weights.
            own: the numbers of the outputs that lie in no input's memory.
            compile_graph: compiles what is left of the graph.
        """
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        numbers = {node: number for number, node in enumerate(placeholders)}
        lies_in = {**numbers, **{value: number for number, value in mutated if value not in numbers}}
        self._plan = plan_outputs(outputs, lies_in, own)
        targets = [placeholders[number] for number, _ in mutated]
        self._is_plain = self._plan.is_plain
        module, kept = _part(graph, [*(value for _, value in mutated), *self._plan.results], targets)
        inputs = [(numbers[node], name) for node, name in kept]
        given = [(number, *weights[number]) for number, _ in inputs if number in weights]
        self._arguments_of = _picker([number for number, _ in inputs if number not in weights])
        self._weights_of = _picker([number for number, _, _ in given])
        self._bindings: Bindings | None = None
        if mutated or self._plan.results:
            places = {name: weights[number][0] for number, name in inputs if number in weights}
            written = tuple(name for target, _ in mutated for number, name in inputs if number == target)
            names = [name for _, name, _ in given]

            def compile_for(tensors: tuple[torch.Tensor, ...]) -> Executable:
                return compile_graph(GraphSource(module, places, _weak(names, tensors), written))

            self._bindings = Bindings(names, compile_for)
            self._bindings.executable_for(tuple(tensor for _, _, tensor in given))

    @property
    def executables(self) -> list[Executable]:
        """The executables, one for each set of weights; none if the graph computes nothing."""
        return [] if self._bindings is None else self._bindings.executables

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """The outputs for these inputs."""
        results: Sequence[Any] = ()
        if self._bindings is not None:
            executable = self._bindings.executable_for(self._weights_of(inputs))
            results = executable(*self._arguments_of(inputs))
        return results if self._is_plain else self._plan.outputs(inputs, results)

    def run_boxed(self, inputs: list[Any]) -> Sequence[Any]:
        """The outputs for these inputs, of which the list is emptied, as aot_autograd wants it."""
        values = tuple(inputs)
        inputs.clear()
        return self(*values)


def _part(
    graph: fx.GraphModule, outputs: Sequence[fx.Node], mutated: Sequence[fx.Node]
) -> tuple[fx.GraphModule, list[tuple[fx.Node, str]]]:
    """What computes `outputs`, and (placeholder of `graph`, name in the part) of each input that it takes.

    Inputs that it only writes to are among them, and all numbers: sizes of tensors are written in them.
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
        if copies[node].users or node in mutated or not isinstance(node.meta.get("val"), torch.Tensor):
            kept.append((node, copies[node].name))
        else:
            part.erase_node(copies[node])
    with unset_fake_temporarily():
        return fx.GraphModule(graph, part), kept


def _weak(names: Sequence[str], tensors: Sequence[torch.Tensor]) -> Callable[[], Mapping[str, torch.Tensor]]:
    """What gives the tensors by name, and does not keep them alive."""
    references = {name: weakref.ref(tensor) for name, tensor in zip(names, tensors, strict=True)}
    return lambda: {name: tensor for name, reference in references.items() if (tensor := reference()) is not None}


def _picker(numbers: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What takes the values with these numbers."""
    if len(numbers) > 1:
        return operator.itemgetter(*numbers)
    return lambda values: tuple(values[number] for number in numbers)
