"""Graphs with gradients in the disk cache: what was traced once, another process needs not trace again.

The key is that of AOTAutograd's own cache: dynamo's graph as text, the inputs' dtypes, sizes and strides, who of them
has gradients, autocast, torch's settings and version. Added are what the compiler reads beside (names of weights,
source lines), the options, the CPU and pipeline's own source. What is kept are the graphs of forward and backward; the
code that they compile to has an entry of its own, under the key that it has anyway (`pipeline.compile_cache`).

Graphs whose outcome is not told by such a key are traced each time: see `_obstacle`.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.utils import counters
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache
from torch._inductor import config as inductor_config
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.compiler import config as compiler_config
from torch.library import _impls as registered_kernels

from pipeline import compile_cache, logs
from pipeline.compiler import cache_key
from pipeline.frontend.capture.fingerprint import NAMESPACES
from pipeline.frontend.capture.replaced import replaced
from pipeline.frontend.dynamo.static_inputs import weights_of
from pipeline.frontend.dynamo.traced_step import BoundPart, TracedStep
from pipeline.frontend.functionalize.functionalize_regions import has_regions
from pipeline.frontend.fx_passes.source_lines import modules_of, source_line
from pipeline.options import Options
from pipeline.shared_cache import TwoLevels
from pipeline.targets import Target

#: Functions of torch's that AOTAutograd's key does not know, and whose arguments in the graph say what they do.
_TOLD_BY_ARGUMENTS = ("torch.amp.autocast_mode._enter_autocast", "torch.amp.autocast_mode._exit_autocast")

#: The kinds of kernels that decide what is traced, and that torch registers none of from Python for its own operators.
_TRACED = ("Autograd", "Autocast", "Composite", "Functionalize", "Python")


class StepCache:
    """What the disk cache has of one graph of dynamo's, and what it gets.

    Attributes:
        found: what it has, once aot_autograd has asked; None if it has nothing.
    """

    def __init__(self, caches: TwoLevels, facts: str):
        """`facts`: what the outcome depends on beside what AOTAutograd's key has."""
        self._caches = caches
        self._facts = facts
        self._key: str | None = None
        self._runtime: bytes | None = None
        self._forward: tuple[BoundPart, bool] | None = None
        self.found: TracedStep | None = None

    @contextlib.contextmanager
    def asked(self, forward: Callable[[list[Any]], Any], backward: Callable[[list[Any]], Any]) -> Iterator[None]:
        """Has aot_autograd ask this cache in the `with` block; where it has the graph, it calls these two functions."""

        def look_up(key: str, *_: Any) -> tuple[Any, bytes] | None:
            self._key = hashlib.sha256(f"step {key}".encode()).hexdigest()
            kept = self._caches.get(self._key)
            if kept is None:
                return None
            found = TracedStep.from_bytes(kept)
            entry = pickle.loads(found.runtime)
            entry.compiled_fw.result.run, entry.compiled_bw.result.run = forward, backward
            self.found = found
            return entry, found.runtime

        def save(_key: str, entry: Any, remote: bool) -> None:
            if entry.compiled_bw is not None:
                entry.pre_save()
                self._runtime = AOTAutogradCache._pickle_entry(entry, remote)

        config = {"force_autograd_cache": True, "bundled_autograd_cache": True}
        told = {**inductor_config.unsafe_marked_cacheable_functions, **dict.fromkeys(_TOLD_BY_ARGUMENTS, "")}
        with (
            inductor_config.patch(unsafe_marked_cacheable_functions=told),
            functorch_config.patch(force_non_lazy_backward_lowering=True, **config),
            compiler_config.patch(cache_key_tag=f"{compiler_config.cache_key_tag} {self._facts}"),
            replaced(AOTAutogradCache, "_lookup", staticmethod(look_up)),
            replaced(AOTAutogradCache, "save", staticmethod(save)),
        ):
            yield

    def keep_forward(self, forward: BoundPart, takes_inputs: bool) -> None:
        """Forward has been compiled."""
        if self._runtime is not None:
            self._forward = forward, takes_inputs

    def keep_backward(self, backward: BoundPart) -> None:
        """Backward has been, too: the step is kept now, if it can be."""
        if self._key is None or self._runtime is None or self._forward is None:
            return
        (forward, takes_inputs), self._forward = self._forward, None
        first, second = forward.kept(), backward.kept()
        if first is None or second is None:
            _told("the graphs have tensors or operators of others' inside")
            return
        step = TracedStep(self._runtime, takes_inputs, first, second)
        problem = self._caches.put(self._key, step.to_bytes())
        if problem is not None:
            _told(problem)


def step_cache(
    graph: fx.GraphModule, inputs: Sequence[Any], keeps_activations: bool, options: Options, target: Target
) -> StepCache | None:
    """The cache for one of dynamo's graphs with gradients; None if it is traced each time.

    Args:
        graph, inputs: as dynamo gives them.
        keeps_activations: see `Capture`.
        options, target: what it is compiled with.
    """
    caches = compile_cache.cache_for(options)
    if caches is None:
        return None
    obstacle = _obstacle(graph, inputs)
    if obstacle is not None:
        _told(obstacle)
        return None
    facts = [keeps_activations, _of_torch(), sorted((n, name) for n, (name, _) in weights_of(graph).items())]
    lines = [(source_line(node), modules_of(node)) for node in graph.graph.nodes]
    return StepCache(caches, cache_key(repr([*facts, lines]), options, target))


def _told(obstacle: str) -> None:
    """Counts and says that a graph is traced each time."""
    counters["pipeline"]["traced each time"] += 1
    logs.log("cache").debug("a graph with gradients is traced each time: %s", obstacle)


def _obstacle(graph: fx.GraphModule, inputs: Sequence[Any]) -> str | None:
    """Why the key does not tell a graph's outcome; None if it does."""
    values = [node.meta.get("example_value") for node in graph.graph.nodes]
    storages = [value.untyped_storage()._cdata for value in inputs if _is_plain(value)]
    obstacles = {
        "sizes are symbolic": any(map(is_symbolic, values)),
        "an input is no plain tensor": len(storages) < len(inputs),
        "inputs share memory": len(set(storages)) < len(storages),
        "it has tensors inside": any(True for _ in (*graph.parameters(), *graph.buffers())),
        "it has branches, loops or graphs of their own": has_regions(graph),
        "it calls operators or functions of others": not all(map(_is_known, graph.graph.nodes)),
        "kernels of torch's operators are others'": any(map(_is_replaced, registered_kernels)),
    }
    return next((obstacle for obstacle, is_there in obstacles.items() if is_there), None)


def _is_plain(value: Any) -> bool:
    plain = type(value) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return plain and value.layout == torch.strided and value.device.type == "cpu"


def is_symbolic(value: Any) -> bool:
    """Whether it is a symbolic number or a tensor of symbolic sizes."""
    if isinstance(value, torch.Tensor):
        return value._has_symbolic_sizes_strides
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _is_known(node: fx.Node) -> bool:
    """Whether a node calls torch's own: the text of the graph has names of other functions only, not what they do."""
    target = node.target
    if node.op != "call_function":
        return node.op != "call_module"
    if isinstance(target, OpOverload):
        return target.namespace in NAMESPACES
    if isinstance(target, OpOverloadPacket):
        return str(target._qualified_op_name).partition("::")[0] in NAMESPACES
    if isinstance(target, HigherOrderOperator):
        return False
    module = getattr(target, "__module__", None) or type(target).__module__
    return module.partition(".")[0] in ("torch", "_operator", "operator", "math", "builtins")


def _is_replaced(registered: str) -> bool:
    """Whether what `torch.library` has registered changes what one of torch's operators is taken apart to."""
    return registered.startswith("aten/") and registered.rpartition("/")[2].startswith(_TRACED)


def _of_torch() -> list[Any]:
    """Settings of torch's that choose ops, beside those that AOTAutograd's key has."""
    attention = torch.backends.cuda
    return [
        attention.flash_sdp_enabled(),
        attention.mem_efficient_sdp_enabled(),
        attention.math_sdp_enabled(),
        torch._C._get_mkldnn_enabled(),
        torch.get_float32_matmul_precision(),
        torch.backends.cpu.get_cpu_capability(),
    ]
