"""The executable of a model that runs in compiled parts and in single ops of torch's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import fx

from pipeline.errors import PipelineError
from pipeline.frontend.fallback.profile import StepTimes, profile_steps
from pipeline.frontend.fallback.steps import PartStep, Step, Values
from pipeline.remarks import Remark
from pipeline.runtime.arguments import ArgumentReader, Arguments
from pipeline.runtime.arrays import ArrayLibrary, converted, extent, overlap, torch_library
from pipeline.runtime.code import Kernel
from pipeline.runtime.destinations import Destinations
from pipeline.runtime.executable import Executable, Fallback
from pipeline.runtime.footprint import Footprint
from pipeline.runtime.profiler import Profile
from pipeline.runtime.signature import Signature
from pipeline.runtime.weights import live_weight


@dataclass(frozen=True)
class Plan:
    """What a call does.

    Attributes:
        arguments: the node of each argument of the call; None for a constant.
        weights: the nodes of the weights that steps read, with their names.
        steps: in order.
        results: the node of each computed result, by number.
        fallbacks: the ops that torch runs.
    """

    arguments: tuple[fx.Node | None, ...]
    weights: tuple[tuple[fx.Node, str], ...]
    steps: tuple[Step, ...]
    results: tuple[fx.Node, ...]
    fallbacks: tuple[Fallback, ...]


def _run(step: Step, values: Values) -> None:
    step.run(values)


def _run_timed(step: Step, values: Values, times: StepTimes) -> None:
    start = time.perf_counter()
    step.run(values)
    if not isinstance(step, PartStep):
        times.add(step, time.perf_counter() - start)


class FallbackExecutable(Executable):
    """A compiled model some of whose ops torch runs; `fallbacks` lists them.

    It is called like any other executable, and cannot be saved. Steps that torch runs use its threads and its random
    numbers.
    """

    def __init__(
        self,
        plan: Plan,
        signature: Signature,
        weights: Mapping[str, Any],
        remarks: tuple[Remark, ...],
        timed: Callable[[], FallbackExecutable] | None,
    ):
        self.signature = signature
        self.remarks = remarks
        self.fallbacks = plan.fallbacks
        self.plan = plan
        self.parts = tuple(step.executable for step in plan.steps if isinstance(step, PartStep))
        self._weights = dict(weights)
        self._library = torch_library()
        self._timed = timed
        self._reader = ArgumentReader(signature)
        self._read_weights()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of all parts."""
        return tuple(kernel for part in self.parts for kernel in part.kernels)

    @property
    def num_threads(self) -> int | None:
        """How many threads share the work of a kernel; see `Executable.num_threads`."""
        return self.parts[0].num_threads if self.parts else None

    @num_threads.setter
    def num_threads(self, number: int | None) -> None:
        for part in self.parts:
            part.num_threads = number

    @property
    def memory(self) -> Footprint:
        """How many bytes it takes, without what torch's ops allocate."""
        parts = [part.memory for part in self.parts]
        return Footprint(
            weights=sum(self._weights[weight.name].nbytes for weight in self.signature.weights),
            unread=0,
            prepared=sum(part.prepared for part in parts),
            workspace=sum(part.workspace for part in parts),
            results=sum(part.results for part in parts),
            code=sum(part.code for part in parts),
            complete=False,
        )

    @property
    def code(self) -> NoReturn:
        """Is there for parts alone."""
        raise PipelineError(self._not_one_code())

    @property
    def objects(self) -> NoReturn:
        """Is there for parts alone."""
        raise PipelineError(self._not_one_code())

    @property
    def target(self) -> str:
        """What the parts are for."""
        return self.parts[0].target if self.parts else "torch"

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Runs the model; see `Executable.__call__`."""
        return self._call(args, kwargs, out)

    def call_timed(self, times: StepTimes, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Likewise; `times` gets to know how long each of torch's ops takes."""
        return self._call(args, kwargs, None, lambda step, values: _run_timed(step, values, times))

    def _call(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any, run: Callable[[Step, Values], None] = _run
    ) -> Any:
        call = self._reader.read(args, kwargs, self._library, self._extents)
        destinations = None if out is None else Destinations(self.signature, out)
        values = self._given(call)
        given = [extent("", value) for value in values.values() if isinstance(value, torch.Tensor)]
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            for step in self.plan.steps:
                run(step, values)
                for node in step.last:
                    del values[node]
            results = [_own(values[node], given) for node in self.plan.results]
        computed = {number: _in_library(value, call.library) for number, value in enumerate(results)}
        self.write_mutations(call, computed, {})
        return self.hand_out(call, computed, destinations)

    def _given(self, call: Arguments) -> Values:
        """What is there before the first step: arguments and weights."""
        values: Values = {
            node: _as_torch(leaf)
            for node, leaf in zip(self.plan.arguments, call.leaves, strict=True)
            if node is not None
        }
        values.update((node, self._weights[name].detach()) for node, name in self.plan.weights)
        return values

    def refresh(self) -> None:
        """Computes again what depends on the weights alone. Call it after the weights have changed."""
        self._read_weights()
        for part in self.parts:
            part.refresh()

    def _read_weights(self) -> None:
        tensors = [(weight.name, live_weight(weight, self._weights)) for weight in self.signature.weights]
        self._extents = tuple(extent(f"weight {name}", tensor) for name, tensor in tensors)

    def profile(self, *args: Any, repeats: int = 10, **kwargs: Any) -> Profile:
        """Where the time of a call goes, kernel by kernel and op by op of torch's; see `Executable.profile`."""
        timed: Any = self if self._timed is None else self._timed()
        timed.num_threads = self.num_threads
        return profile_steps(timed, timed.plan.steps, args, kwargs, repeats)

    def ir(self, stage: str) -> str:
        """The MLIR text of all parts after a stage of compilation."""
        texts = [f"// part {number}\n{part.ir(stage)}" for number, part in enumerate(self.parts)]
        if not texts:
            raise PipelineError(f"stage {stage!r}: torch runs all of this executable")
        return "\n".join(texts)

    def save(self, path: str | Path) -> NoReturn:
        """Raises `PipelineError`: an artifact has no torch that could run ops."""
        raise PipelineError(f"{path}: cannot be saved; {self._not_one_code()}")

    def _not_one_code(self) -> str:
        ops = "".join(f"\n  {fallback}" for fallback in self.fallbacks)
        count = "1 op" if len(self.fallbacks) == 1 else f"{len(self.fallbacks)} ops"
        return f"torch runs {count} of the model, which an artifact cannot have:{ops}"


def _own(value: Any, given: Sequence[Any]) -> Any:
    """A result that shares no memory with what was given: torch's ops may return views."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return value
    place = extent("", value)
    return value.clone() if any(overlap(place, other) for other in given) else value


def _as_torch(value: Any) -> Any:
    """An argument as a tensor of torch's, over the same memory where NumPy's dtype is one of NumPy's own."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if not isinstance(value, np.ndarray):
        return value
    return torch.from_numpy(value) if value.dtype.isbuiltin == 1 else converted(value, torch_library())


def _in_library(value: Any, library: ArrayLibrary) -> Any:
    """A result as a tensor of the caller's library."""
    return value if library is torch_library() else converted(value, library)
