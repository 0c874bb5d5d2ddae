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


class Backward:
    """Computes the gradients of a graph; compiled when they are first asked for, which evaluation does not do."""

    def __init__(self, owner: Any, compile_graph: Compile):
        """What is compiled is registered with `owner`."""
        self._owner = owner
        self._compile_graph = compile_graph
        self._run: Callable[[list[Any]], Sequence[Any]] | None = None

    def __call__(self, graph: fx.GraphModule, inputs: list[Any]) -> Sequence[Any]:
        """The outputs of aot_autograd's graph for these inputs, of which the list is emptied, as that wants it."""
        if self._run is None:
            self._run = self._compiled(graph)
        return self._run(inputs)

    def _compiled(self, graph: fx.GraphModule) -> Callable[[list[Any]], Sequence[Any]]:
        try:
            parted = decomposed(graph)
            code = CompiledGraph(parted, parted.graph.output_node().args[0], (), {}, (), self._compile_graph)
        except PipelineError as error:
            counters["pipeline"]["backward in eager"] += 1
            warnings.warn(
                f'torch.compile(backend="pipeline"): PyTorch computes gradients in eager mode: {error}', stacklevel=2
            )
            return make_boxed_func(graph.forward)
        register(self._owner, code)
        self._code = code
        return code.run_boxed
