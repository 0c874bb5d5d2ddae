"""Backward as compiled code."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from functorch.compile import make_boxed_func
from torch import fx
from torch._dynamo.utils import counters

from pipeline.errors import PipelineError
from pipeline.frontend.dynamo.capture import decomposed
from pipeline.frontend.dynamo.compiled_graph import Compile, CompiledGraph
from pipeline.frontend.dynamo.registry import register
from pipeline.frontend.dynamo.static_inputs import Weights
from pipeline.frontend.gradients.changing_weights import weights_of_convolutions


class Backward:
    """Computes the gradients of a graph; compiled when they are first asked for, which evaluation does not do."""

    def __init__(self, owner: Any, weights: Weights, compile_graph: Compile):
        """What is compiled is registered with `owner`; `weights` are those that forward takes."""
        self._owner = owner
        self._names = {id(tensor): name for name, tensor in weights.values()}
        self._compile_graph = compile_graph
        self._run: Callable[[list[Any]], Sequence[Any]] | None = None

    def __call__(self, graph: fx.GraphModule, inputs: list[Any]) -> Sequence[Any]:
        """The outputs of aot_autograd's graph for these inputs, of which the list is emptied, as that wants it."""
        if self._run is None:
            self._run = self._compiled(graph, inputs)
        return self._run(inputs)

    def _compiled(self, graph: fx.GraphModule, inputs: list[Any]) -> Callable[[list[Any]], Sequence[Any]]:
        try:
            parted = decomposed(graph)
            dear = [number for number in weights_of_convolutions(parted) if id(inputs[number]) in self._names]
            weights = {number: (self._names[id(inputs[number])], inputs[number]) for number in dear}
            code = CompiledGraph(parted, parted.graph.output_node().args[0], (), weights, (), self._compile_graph)
        except PipelineError as error:
            counters["pipeline"]["backward in eager"] += 1
            warnings.warn(
                f'torch.compile(backend="pipeline"): PyTorch computes gradients in eager mode: {error}', stacklevel=2
            )
            return make_boxed_func(graph.forward)
        register(self._owner, code)
        self._code = code
        return code.run_boxed
