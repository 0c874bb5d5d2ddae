"""The executable of a model that runs in compiled parts and in single ops of torch's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import fx

from pipeline import locks
from pipeline.errors import PipelineError
from pipeline.frontend.fallback.profile import StepTimes, profile_steps
from pipeline.frontend.fallback.steps import FallbackStep, PartStep, Values
from pipeline.remarks import Remark
from pipeline.report.recording import Recording
from pipeline.runtime.call.arguments import ArgumentReader, Arguments
from pipeline.runtime.call.array_libraries import converted, extent, overlap, torch_library
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.call.out_arguments import Destinations
from pipeline.runtime.call.outcome import hand_out, write_mutations
from pipeline.runtime.executable import Executable, Fallback
from pipeline.runtime.interface.code import Kernel
from pipeline.runtime.interface.signature import Signature
from pipeline.runtime.report.footprint import Footprint
from pipeline.runtime.report.profiler import Profile
from pipeline.runtime.weights.weight_binding import live_weights
from pipeline.runtime.weights.weight_source import FixedWeights, RefreshMode, WeightSource


@dataclass(frozen=True)
class FallbackPlan:
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
    steps: tuple[FallbackStep, ...]
    results: tuple[fx.Node, ...]
    fallbacks: tuple[Fallback, ...]


def _run(step: FallbackStep, values: Values) -> None:
    step.run(values)


def _run_timed(step: FallbackStep, values: Values, times: StepTimes) -> None:
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
        plan: FallbackPlan,
        signature: Signature,
        weights: WeightSource,
        remarks: tuple[Remark, ...],
        timed: Callable[[], FallbackExecutable] | None,
        refresh: RefreshMode = "auto",
    ):
        self.signature = signature
        self.remarks = remarks
        self.passes = ""  # each part has its own
        self.fallbacks = plan.fallbacks
        self.plan = plan
        self.parts = tuple(step.executable for step in plan.steps if isinstance(step, PartStep))
        self._source = weights
        self._is_watched = refresh == "auto"
        self._refreshing = locks.recursive_lock()
        self._live = live_weights(signature, weights)
        self._library = torch_library()
        self._timed = timed
        self._reader = ArgumentReader(signature)

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
            weights=sum(tensor.nbytes for tensor in self._live.values()),
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
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        out: Any,
        run: Callable[[FallbackStep, Values], None] = _run,
    ) -> Any:
        if self._is_watched:
            self._look_up_weights()
        live = self._live
        extents = [extent(f"weight {name}", tensor) for name, tensor in live.items()]
        call = self._reader.read(args, kwargs, self._library, extents)
        destinations = None if out is None else Destinations(self.signature, out)
        values = self._given(call, live)
        given = [extent("", value) for value in values.values() if isinstance(value, torch.Tensor)]
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            for step in self.plan.steps:
                run(step, values)
                for node in step.last:
                    del values[node]
            results = [_own(values[node], given) for node in self.plan.results]
        computed = {number: _in_library(value, call.library) for number, value in enumerate(results)}
        write_mutations(self.signature, call, computed, live, {})
        return hand_out(self.signature, call, computed, destinations)

    def _given(self, call: Arguments, live: Mapping[str, Any]) -> Values:
        """What is there before the first step: arguments and weights."""
        values: Values = {
            node: _as_torch(leaf)
            for node, leaf in zip(self.plan.arguments, call.leaves, strict=True)
            if node is not None
        }
        values.update((node, live[name].detach()) for node, name in self.plan.weights)
        return values

    def refresh(self) -> None:
        """Reads the model's weights again, and computes what depends on them alone; see `Executable.refresh`."""
        with self._refreshing:
            self._look_up_weights()
            for part in self.parts:
                part.refresh()

    def with_weights(self, weights: Mapping[str, Any]) -> FallbackExecutable:
        """See `Executable.with_weights`; the parts take theirs."""

        def taken(part: Executable) -> Executable:
            return part.with_weights({weight.name: weights[weight.name] for weight in part.signature.weights})

        other = self._with_parts(taken, FixedWeights(dict(weights)))
        if self._timed is not None:
            timed = self._timed
            other._timed = lambda: timed().with_weights(weights)
        other._live = live_weights(other.signature, other._source)
        return other

    def without_weights(self) -> FallbackExecutable:
        """See `Executable.without_weights`."""
        return self._with_parts(lambda part: part.without_weights(), FixedWeights())

    def _with_parts(self, change: Callable[[Executable], Executable], source: WeightSource) -> FallbackExecutable:
        """The same steps with other parts, and no weights looked up yet."""
        steps = [replace(s, executable=change(s.executable)) if isinstance(s, PartStep) else s for s in self.plan.steps]
        other = object.__new__(FallbackExecutable)
        vars(other).update(vars(self))
        other.plan = replace(self.plan, steps=tuple(steps))
        other.parts = tuple(step.executable for step in steps if isinstance(step, PartStep))
        other._refreshing = locks.recursive_lock()
        other._source, other._live = source, {}
        return other

    def _look_up_weights(self) -> None:
        """Has the parts take the tensors that the weights are now; writes to them the parts notice themselves."""
        live = live_weights(self.signature, self._source)
        if all(self._live.get(name) is tensor for name, tensor in live.items()):
            return
        with self._refreshing:
            for part in self.parts:
                part.rebind({weight.name: live[weight.name] for weight in part.signature.weights})
            self._live = live

    def recordings(self) -> tuple[Recording, ...]:
        """See `Executable.recordings`; there is one for each part."""
        return tuple(recording for part in self.parts for recording in part.recordings())

    @property
    def has_profile(self) -> bool:
        """See `Executable.has_profile`."""
        return True

    def profile(self, *args: Any, repeats: int = 10, **kwargs: Any) -> Profile:
        """Where the time of a call goes, kernel by kernel and op by op of torch's; see `Executable.profile`."""
        timed: Any = self if self._timed is None else self._timed()
        timed.num_threads = self.num_threads
        timed._source = self._source
        return profile_steps(timed, timed.plan.steps, args, kwargs, repeats)

    def ir(self, stage: str) -> str:
        """The MLIR text of all parts after a stage of compilation."""
        texts = [f"// part {number}\n{part.ir(stage)}" for number, part in enumerate(self.parts)]
        if not texts:
            raise PipelineError(f"stage {stage!r}: torch runs all of this executable")
        return "\n".join(texts)

    def save(self, path: str | Path, *, prepacked: bool = False) -> NoReturn:
        """Raises `PipelineError`: an artifact has no torch that could run ops."""
        raise PipelineError(f"{path}: cannot be saved; {self._not_one_code()}")

    def contents(self, *, prepacked: bool = False) -> NoReturn:
        """Raises `PipelineError`, as `save` does."""
        raise PipelineError(f"cannot be saved; {self._not_one_code()}")

    def _not_one_code(self) -> str:
        ops = "".join(f"\n  {fallback}" for fallback in self.fallbacks)
        count = "1 op" if len(self.fallbacks) == 1 else f"{len(self.fallbacks)} ops"
        return f"torch runs {count} of the model, which an artifact cannot have:{ops}"


def _own(value: Any, given: Sequence[Any]) -> Any:
    """A result that shares no memory with what was given: torch's ops may return views."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return value
    place = extent("", value)
    return _copy(value) if any(overlap(place, other) for other in given) else value


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


def _copy(value: torch.Tensor) -> torch.Tensor:
    """A clone; of single bytes as such, for torch copies not every dtype of them."""
    return value.view(torch.uint8).clone().view(value.dtype) if value.dtype.itemsize == 1 else value.clone()
