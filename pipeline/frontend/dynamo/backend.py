"""The backend: dynamo's graph → code that dynamo calls.

Most graphs are called as they are. What code alone cannot do, as views of inputs that carry gradients, or the gradients
themselves, aot_autograd's runtime does around the code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.utils import counters

from pipeline.compiler import target_for
from pipeline.errors import ArgumentError
from pipeline.frontend.dynamo.backward import Backward
from pipeline.frontend.dynamo.bindings import forget_orphans
from pipeline.frontend.dynamo.called_part import CalledPart
from pipeline.frontend.dynamo.capture import Capture
from pipeline.frontend.dynamo.compiled_graph import Compile, CompiledGraph, compile_with
from pipeline.frontend.dynamo.decomposed import views_complex_numbers
from pipeline.frontend.dynamo.direct import NotDirectError, direct_form
from pipeline.frontend.dynamo.modes import options_of
from pipeline.frontend.dynamo.registry import current_owner, register
from pipeline.frontend.dynamo.static_inputs import Weights, weights_inside, weights_of
from pipeline.frontend.dynamo.traced_step import BoundPart
from pipeline.frontend.dynamo.training_mode import is_training
from pipeline.frontend.gradients.changing_weights import weights_of_convolutions
from pipeline.remarks import Remark


def pipeline_backend(
    graph: fx.GraphModule, inputs: list[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """Compiles one of dynamo's graphs.

    torch's counters["pipeline"] say how many graphs were compiled, and how many calls go `direct` to the code or
    through aot_autograd's `runtime`, with a `backward` or without; how many graphs with gradients were `cached`, and
    how many are `traced each time`, as the disk cache cannot have them.

    Args:
        graph, inputs: as dynamo gives them.
        options: those of `pipeline.compile`.
        mode: one of torch.compile's, see `pipeline.frontend.dynamo.modes`.
    """
    forget_orphans()
    chosen = options_of(options, mode)
    target = target_for(chosen)
    compile_graph = compile_with(chosen, target)
    capture, owner = Capture(graph, inputs, is_training(graph), chosen, target), current_owner()
    lifted = capture.lifted
    weights = {number + len(lifted): weight for number, weight in weights_of(graph).items()}
    _count("graphs")
    try:
        form = direct_form(capture)
    except NotDirectError as reason:
        known = weights if capture.takes_inputs else _inside(graph, capture)
        return _through_runtime(capture, owner, compile_graph, known, str(reason))
    part = CalledPart.of(capture.graph, form.outputs, form.mutated, form.own, form.detached)
    code = CompiledGraph(part, weights, compile_graph)
    register(owner, code)
    _count("direct")
    call = (lambda *inputs: code(*lifted, *inputs)) if lifted else code
    if not form.mutated:
        return call
    names = {number: name for number, (name, _) in weights.items()}
    return _WritingCall(call, lifted, names, functools.partial(_through_runtime, capture, owner, compile_graph))


class _WritingCall:
    """Calls code that writes to inputs; aot_autograd's runtime where these share memory with others in a call."""

    def __init__(
        self,
        code: Callable[..., Sequence[Any]],
        lifted: Sequence[torch.Tensor],
        names: dict[int, str],
        make_runtime: Callable[..., Callable[..., Any]],
    ):
        self._code = code
        self._lifted = lifted
        self._names = names
        self._make_runtime = make_runtime
        self._runtime: Callable[..., Any] | None = None

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """The graph's outputs."""
        try:
            return self._code(*inputs)
        except ArgumentError as error:
            reason = str(error)
        if self._runtime is None:
            given = (*self._lifted, *inputs)
            weights = {number: (name, given[number]) for number, name in self._names.items()}
            self._runtime = self._make_runtime(weights, reason)
        return self._runtime(*inputs)


def _inside(graph: fx.GraphModule, capture: Capture) -> Weights:
    """The weights that aot_autograd takes out of tensor subclasses; with gradients it takes other inputs, too."""
    return {} if capture.trains else weights_inside(graph, capture.graph)


def _through_runtime(
    capture: Capture, owner: Any, compile_graph: Compile, weights: Weights, reason: str
) -> Callable[..., Any]:
    """Compiles what aot_autograd's runtime calls: what is written to inputs comes back as outputs."""
    forward = _forward(capture, weights)
    bound = {number: weights[number] for number in forward.weights}
    code = CompiledGraph(forward.part, bound, compile_graph)
    if capture.steps is not None:
        capture.steps.keep_forward(forward, capture.takes_inputs)
    capture.code.forward = code.run_boxed
    capture.code.backward = Backward(owner, code, weights, compile_graph, capture.steps)
    remark = Remark("torch.compile", "missed", "builtin.module", f"called by aot_autograd's runtime: {reason}")
    for executable in code.executables:
        executable.remarks = (*executable.remarks, remark)
    register(owner, code)
    _count("backward" if capture.trains else "runtime")
    return capture.runtime


def _forward(capture: Capture, weights: Weights) -> BoundPart:
    """What the code of a graph computes: as it was kept, or of what was captured."""
    if capture.steps is not None and capture.steps.found is not None:
        _count("cached")
        return capture.steps.found.forward
    dear = weights_of_convolutions(capture.graph) if capture.keeps_activations else set(weights)
    outputs = capture.graph.graph.output_node().args[0]
    detached = set(range(len(outputs))) - _complex_views(capture) if capture.trains else ()
    part = CalledPart.of(capture.graph, outputs, detached=detached)
    return BoundPart(part, tuple(number for number in weights if number in dear))


def _complex_views(capture: Capture) -> set[int]:
    """The numbers of the outputs that aot_autograd's runtime takes of another tensor as these are taken: conjugates.

    Of others it asks sizes and strides alone. A view of an output that carries gradients would do so, too: of the
    outputs that the runtime leaves as they are, torch.autograd.Function says which do.
    """
    facts, outputs = capture.facts, capture.graph.graph.output_node().args[0]
    numbers = (facts.num_mutated_inp_runtime_indices + number for number in facts.aliased_out_indices)
    return {number for number in numbers if views_complex_numbers(outputs[number])}


def _count(what: str) -> None:
    counters["pipeline"][what] += 1
