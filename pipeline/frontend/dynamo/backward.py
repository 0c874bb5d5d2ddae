"""Backward as compiled code."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch import fx
from torch._dynamo.utils import counters

from pipeline.errors import PipelineError
from pipeline.frontend.dynamo.called_part import CalledPart
from pipeline.frontend.dynamo.compiled_graph import Compile, CompiledGraph
from pipeline.frontend.dynamo.decomposed import decomposed
from pipeline.frontend.dynamo.registry import register
from pipeline.frontend.dynamo.static_inputs import Weights
from pipeline.frontend.dynamo.step_cache import StepCache
from pipeline.frontend.dynamo.traced_step import BoundPart
from pipeline.frontend.gradients.changing_weights import weights_of_convolutions


class BackwardGraph:
    """A graph that computes gradients.

    Attributes:
        functional: as aot_autograd gives it.
    """

    def __init__(self, functional: fx.GraphModule, random: str):
        """`random` is the option: whose numbers it draws, if it does."""
        self.functional = functional
        self._random = random
        self._parted: fx.GraphModule | None = None

    def take_apart(self) -> fx.GraphModule:
        """The graph in the ops that can be lowered."""
        if self._parted is None:
            self._parted = decomposed(self.functional, self._random)
        return self._parted


class Backward:
    """Computes the gradients of a graph; compiled when they are first asked for, which evaluation does not do."""

    def __init__(
        self,
        owner: Any,
        forward: CompiledGraph,
        weights: Weights,
        compile_graph: Compile,
        steps: StepCache | None,
    ):
        """What is compiled is registered with `owner`; `weights` are those that `forward` takes.

        `steps` may have it already, or gets it.
        """
        self._owner = owner
        self._forward = forward
        self._steps = steps
        self._names = {id(tensor): name for name, tensor in weights.values()}
        self._compile_graph = compile_graph
        self._run: Callable[[list[Any]], Sequence[Any]] | None = None

    def __call__(self, graph: BackwardGraph | None, inputs: list[Any]) -> Sequence[Any]:
        """The outputs of aot_autograd's graph for these inputs, of which the list is emptied, as that wants it.

        Without a graph it is the one that the disk cache has.
        """
        if self._run is None:
            self._run = self._compiled(graph, inputs)
        return self._run(inputs)

    def _compiled(self, graph: BackwardGraph | None, inputs: list[Any]) -> Callable[[list[Any]], Sequence[Any]]:
        try:
            backward = self._part(graph, inputs)
            taken = [inputs[number] for number in backward.weights]
            weights = {
                number: (self._names[id(tensor)], tensor)
                for number, tensor in zip(backward.weights, taken, strict=True)
                if id(tensor) in self._names  # not where a user's hook has kept something in its place
            }
            code = CompiledGraph(backward.part, weights, self._compile_graph)
        except PipelineError as error:
            if graph is None:
                raise
            counters["pipeline"]["backward in eager"] += 1
            warnings.warn(
                f'torch.compile(backend="pipeline"): PyTorch computes gradients in eager mode: {error}', stacklevel=2
            )
            return make_boxed_func(_whatever_the_strides(graph.functional).forward)
        if self._steps is not None:
            self._steps.keep_backward(backward)
        code.share_workspace(self._forward)
        register(self._owner, code)
        self._code = code
        return code.run_boxed

    def _part(self, graph: BackwardGraph | None, inputs: list[Any]) -> BoundPart:
        """What backward computes: as it was kept, or of aot_autograd's graph."""
        if graph is None:
            assert self._steps is not None and self._steps.found is not None
            return self._steps.found.backward
        parted = graph.take_apart()
        dear = [number for number in weights_of_convolutions(parted) if id(inputs[number]) in self._names]
        return BoundPart(CalledPart.of(parted, parted.graph.output_node().args[0]), tuple(dear))


def _whatever_the_strides(graph: fx.GraphModule) -> fx.GraphModule:
    """A copy that runs op by op on what compiled code has kept, with other strides than views were traced of."""
    copied = fx.Graph()
    copied.output(copied.graph_copy(graph.graph, {}))
    for node in copied.find_nodes(op="call_function", target=torch.ops.aten.view.default):
        node.target = torch.ops.aten.reshape.default
    return fx.GraphModule(graph, copied)
