"""A functional graph as compiled code, called with dynamo's flat inputs."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from pipeline import logs
from pipeline.compiler import compile_source
from pipeline.frontend.dynamo.bindings import Bindings
from pipeline.frontend.dynamo.called_part import CalledPart
from pipeline.frontend.dynamo.static_inputs import Weights
from pipeline.options import Options
from pipeline.program import ProgramSource
from pipeline.runtime.executable import Executable
from pipeline.targets import Target

#: Compiles what was captured.
Compile = Callable[[ProgramSource], Executable]


def compile_with(options: Options, target: Target) -> Compile:
    """What compiles graphs with these options."""

    def compile_graph(source: ProgramSource) -> Executable:
        with unset_fake_temporarily():
            return compile_source(source, options, target)

    return compile_graph


class CompiledGraph:
    """Takes dynamo's inputs, gives the graph's outputs."""

    def __init__(self, part: CalledPart, weights: Weights, compile_graph: Compile):
        """Compiles what is left of a graph.

        Args:
            part: what a call computes.
            weights: (name in the model, tensor) by the numbers of the inputs that are the model's weights.
            compile_graph: compiles it.
        """
        self._plan = part.plan
        self._is_plain = self._plan.is_plain
        given = [(number, *weights[number]) for number, _ in part.inputs if number in weights]
        self._arguments_of = _picker([number for number, _ in part.inputs if number not in weights])
        self._weights_of = _picker([number for number, _, _ in given])
        self._bindings: Bindings | None = None
        if part.written or self._plan.count:
            places = {name: weights[number][0] for number, name in part.inputs if number in weights}
            names = [name for _, name, _ in given]

            def compile_for(tensors: tuple[torch.Tensor, ...]) -> Executable:
                logs.log("dynamo").info("a graph of %d inputs, %d of them weights", len(part.inputs), len(names))
                return compile_graph(part.source(places, _weak(names, tensors)))

            self._bindings = Bindings(names, compile_for)
            self._bindings.executable_for(tuple(tensor for _, _, tensor in given))

    @property
    def executables(self) -> list[Executable]:
        """The executables, one for each set of weights; none if the graph computes nothing."""
        return [] if self._bindings is None else self._bindings.executables

    def share_workspace(self, other: CompiledGraph) -> None:
        """Has the temporaries of both graphs' code lie in the same memory, see `Executable.share_workspace`."""
        for executable, before in zip(self.executables[:1], other.executables[:1], strict=False):
            executable.share_workspace(before)

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


def _weak(names: Sequence[str], tensors: Sequence[torch.Tensor]) -> Callable[[], Mapping[str, torch.Tensor]]:
    """What gives the tensors by name, and does not keep them alive."""
    references = {name: weakref.ref(tensor) for name, tensor in zip(names, tensors, strict=True)}
    return lambda: {name: tensor for name, reference in references.items() if (tensor := reference()) is not None}


def _picker(numbers: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What takes the values with these numbers."""
    if len(numbers) > 1:
        return operator.itemgetter(*numbers)
    return lambda values: tuple(values[number] for number in numbers)
