"""aot_autograd as this backend uses it: it makes dynamo's graphs functional and says what they do to their inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd.schemas import ViewAndMutationMeta
from torch._guards import TracingContext, detect_fake_mode
from torch.fx.experimental.proxy_tensor import make_fx

from pipeline.frontend.capture.capture import capturing
from pipeline.frontend.capture.keyword_overloads import written_as_attributes
from pipeline.frontend.capture.lean_traces import lean_traces
from pipeline.frontend.dynamo.backward import BackwardGraph
from pipeline.frontend.dynamo.decomposed import (
    decomposed,
    has_symbolic_strides,
    keep_views,
    table_with_strides,
)
from pipeline.frontend.dynamo.python_kernels import replacements_first
from pipeline.frontend.dynamo.step_cache import StepCache, is_symbolic, step_cache
from pipeline.frontend.dynamo.traced_step import Boxed
from pipeline.frontend.functionalize.effect_tokens import drop_effect_tokens, linalg_checks_taken_apart
from pipeline.frontend.functionalize.functionalize_regions import has_regions, purify
from pipeline.frontend.functionalize.higher_order_call import writes_are_kept
from pipeline.frontend.functionalize.strides_of_owners import graph_from_owners
from pipeline.frontend.functionalize.written_windows import stride_written_windows_of_dynamo
from pipeline.frontend.gradients.activations import activation_partition, joint_table
from pipeline.frontend.gradients.norms import round_results
from pipeline.frontend.gradients.recompute import recompute_partition
from pipeline.frontend.numbers.symbolic_math import UNNAMED_CHECK
from pipeline.frontend.recurrent import taken_apart
from pipeline.options import Options
from pipeline.targets import Target

aten = torch.ops.aten


class GraphCalls:
    """What aot_autograd's runtime calls.

    It does not know the capture, which has the runtime: they would keep each other alive, and an optimizer's state,
    until Python looks for garbage.

    Attributes:
        forward: what calls the compiled graph, as aot_autograd wants it: takes a list that it empties.
        backward: likewise, of the graph that computes gradients, which it is given, too.
    """

    forward: Callable[[list[Any]], Any]
    backward: Callable[[BackwardGraph | None, list[Any]], Any]

    def run_forward(self, inputs: list[Any]) -> Any:
        """Calls what has been compiled by then."""
        return self.forward(inputs)

    def run_backward(self, inputs: list[Any]) -> Any:
        """Likewise, of a graph that the disk cache has."""
        return self.backward(None, inputs)


class Capture:
    """A graph of dynamo's as a functional one.

    Attributes:
        graph: in ATen; it returns the new values of the inputs that are written to, then the results.
        facts: what aot_autograd found out about inputs and results.
        lifted: tensors that dynamo's graph has and this one takes, before dynamo's inputs: an optimizer's, for example.
        takes_inputs: whether it takes these and dynamo's inputs as they are; else aot_autograd has put them together.
        trains: whether results carry gradients; then the graph returns what backward needs, too.
        keeps_activations: whether that are activations, and not the inputs alone.
        steps: what the disk cache has of a graph with gradients, see there; None of any other graph.
        random: whose numbers are drawn, as the option says.
        runtime: calls what `code` has and does what the functional graph leaves to be done. Takes dynamo's inputs.
        code: what calls the compiled graphs.
    """

    graph: fx.GraphModule
    facts: ViewAndMutationMeta
    lifted: tuple[torch.Tensor, ...]
    takes_inputs: bool
    trains: bool = False
    keeps_activations: bool
    steps: StepCache | None

    def __init__(
        self, graph: fx.GraphModule, inputs: list[Any], keeps_activations: bool, options: Options, target: Target
    ):
        """Captures a graph, or finds what has been captured of it in the disk cache.

        Args:
            graph, inputs: as dynamo gives them.
            keeps_activations: forward keeps what backward would have to compute again, if results carry gradients.
            options, target: what the graph is compiled with.
        """
        _name_checks(graph)
        stride_written_windows_of_dynamo(graph)
        self.random = random = options.random
        self.code = GraphCalls()
        perhaps_trains = torch.is_grad_enabled() and any(_requires_grad(value) for value in inputs)
        self.steps = step_cache(graph, inputs, keeps_activations, options, target) if perhaps_trains else None
        self.keeps_activations = keeps = perhaps_trains and keeps_activations and _is_plain(graph)
        in_parts = perhaps_trains or any(map(_is_complex, graph.graph.nodes))
        whole = {} if in_parts else table_with_strides(random)
        backend = aot_autograd(
            fw_compiler=self._take_forward,
            bw_compiler=self._take_backward,
            inference_compiler=self._take_inference,
            partition_fn=activation_partition if keeps else recompute_partition,
            decompositions=dict(joint_table(random) if keeps else whole),
        )
        settings = functorch_config.patch(
            unlift_effect_tokens=True,  # or the code would take and return tokens
            force_non_lazy_backward_lowering=any(map(is_symbolic, inputs)),  # see `_take_backward`
        )
        loops = contextlib.nullcontext() if perhaps_trains else taken_apart()
        checks = contextlib.nullcontext() if perhaps_trains else linalg_checks_taken_apart()
        calls = self.code.run_forward, self.code.run_backward
        asked = self.steps.asked(*calls) if self.steps else contextlib.nullcontext()
        with capturing, lean_traces(), settings, loops, checks, replacements_first(), written_as_attributes(), asked:
            pure = _with_pure_regions(graph)
            self.runtime: Callable[..., Any] = backend(pure if perhaps_trains else graph_from_owners(pure), inputs)
        tensors = (graph.named_parameters, graph.named_buffers)
        self.lifted = tuple(tensor for named in tensors for _, tensor in named(remove_duplicate=False))
        if self.steps is not None and self.steps.found is not None:
            self.trains, self.takes_inputs = True, self.steps.found.takes_inputs
            return
        taken = sum(node.op == "placeholder" for node in self.graph.graph.nodes)
        self.takes_inputs = taken == len(self.lifted) + len(inputs)
        if perhaps_trains:
            drop_effect_tokens(self.graph.graph)
            round_results(self.graph.graph, self.facts.num_mutated_inp_runtime_indices, graph.graph)
        if in_parts or has_symbolic_strides(self.graph.graph):
            keep_views(self.graph.graph)
            self.graph = decomposed(self.graph, random)

    def _take_inference(self, graph: fx.GraphModule, _inputs: list[Any]) -> Callable[..., Any]:
        if self.steps is not None:
            self.steps.found = None  # aot_autograd could not use it
        self.graph = graph
        self.facts = TracingContext.get().fw_metadata
        return Boxed(self.code.run_forward)

    def _take_forward(self, graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        self.trains = True
        return self._take_inference(graph, inputs)

    def _take_backward(self, graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """Takes backward: before forward is compiled where sizes are symbolic, else as gradients are first asked for.

        What is asked about sizes while it is taken apart dynamo guards only then.
        """
        _keep_what_backward_reads()
        code, backward = self.code, BackwardGraph(graph, self.random)
        if any(map(is_symbolic, inputs)):
            with contextlib.suppress(Exception):  # is raised again where gradients are asked for
                backward.take_apart()
        return Boxed(lambda inputs: code.backward(backward, inputs))


def _keep_what_backward_reads() -> None:
    """Says that backward writes to nothing that forward has kept: then a graph may be retained, as in eager mode.

    aot_autograd refuses `retain_graph=True` for a backward that may write there, once it has been compiled for a call
    without. Its runtime looks at this very list.
    """
    facts = TracingContext.get().fw_metadata
    if facts is not None and facts.bw_donated_idxs:
        facts.bw_donated_idxs.clear()


def _name_checks(graph: fx.GraphModule) -> None:
    """Gives checks a message, in branches and loops, too: torch drops those without one from its graphs."""
    for part in graph.modules():
        if isinstance(part, fx.GraphModule):
            checks = part.graph.find_nodes(op="call_function", target=torch._assert_async)
            unnamed = [node for node in checks if len(node.args) == 1 and not node.kwargs]
            for node in unnamed:
                node.args = (*node.args, UNNAMED_CHECK)
            if unnamed:
                part.recompile()


def _requires_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _is_plain(graph: fx.GraphModule) -> bool:
    """Whether a graph consists of ops on real numbers alone, without branches and loops."""
    return not has_regions(graph) and not any(map(_is_complex, graph.graph.nodes))


def _is_complex(node: fx.Node) -> bool:
    value = node.meta.get("example_value")
    return isinstance(value, torch.Tensor) and value.is_complex()


def _with_pure_regions(graph: fx.GraphModule) -> fx.GraphModule:
    """The graph in ATen with pure branches and loops, see `purify`; itself if it has none."""
    if not has_regions(graph):
        return graph
    examples = [node.meta["example_value"] for node in graph.graph.nodes if node.op == "placeholder"]
    fake = detect_fake_mode(examples)
    with torch.no_grad(), writes_are_kept(), fake or contextlib.nullcontext():
        traced = make_fx(graph, tracing_mode="symbolic", pre_dispatch=True, _allow_non_fake_inputs=True)(*examples)
    purify(traced)
    return traced
