"""The backend of `torch.compile(model, backend="pipeline")`, for inference."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch_config
from torch._guards import detect_fake_mode
from torch.fx.experimental.proxy_tensor import make_fx

from pipeline.compiler import compile_source, target_for
from pipeline.errors import CaptureError
from pipeline.frontend.capture import capturing
from pipeline.frontend.decompositions import decomposition_table
from pipeline.frontend.purify import has_regions, purify
from pipeline.frontend.recurrent import taken_apart
from pipeline.frontend.region_call import writes_are_kept
from pipeline.frontend.sources import GraphSource
from pipeline.frontend.view_results import with_view_results
from pipeline.options import Options


def pipeline_backend(
    graph: fx.GraphModule, inputs: list[Any], *, options: Mapping[str, Any] | None = None, **kwargs: Any
) -> Callable[..., Any]:
    """Compiles one of dynamo's graphs. `options` are those of `pipeline.compile`.

    Parameters are arguments of the compiled code here, since dynamo may call one graph with several modules' weights.
    Training is refused with one clear error: run the model under torch.no_grad().
    """
    chosen = Options.create(dict(options or {}))
    target = target_for(chosen)

    def compile_inference(functional: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        executable = compile_source(GraphSource(functional), chosen, target)
        return make_boxed_func(with_view_results(functional, lambda *args: list(executable(*args))))

    backend = aot_autograd(
        fw_compiler=_refuse_training,
        bw_compiler=_refuse_training,
        inference_compiler=compile_inference,
        decompositions=decomposition_table(),
    )
    tokens = functorch_config.patch(unlift_effect_tokens=True)  # or the code would take and return tokens
    with capturing, taken_apart(), tokens:
        return backend(_with_pure_regions(graph), inputs)


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


def _refuse_training(graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    raise CaptureError(
        'torch.compile(backend="pipeline") is for inference; call the model under torch.no_grad(), '
        "or set requires_grad=False on its parameters and inputs"
    )
