"""Measuring kernels on many machines: what `tune=seconds` does on one, spread over those that have the same CPU.

A machine of each kind captures the models and says what kernels they have. The variants of those that nobody has
measured yet are measured a few at a time, each machine having one kernel at a time and nothing of ray's beside it; the
best one is confirmed in a second round, on whichever machine is free. What is found is kept under the keys that
compilations with `tune=0` look for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline import compiler
from pipeline.disk_cache import open_cache
from pipeline.errors import OptionError
from pipeline.ir.schedule import DEFAULT, Schedule
from pipeline.options import Options
from pipeline.ray import models as model_arguments
from pipeline.ray.crew import Crew, CrewJob, Done
from pipeline.ray.models import Model
from pipeline.shared_cache import TwoLevels, shared_cache
from pipeline.tuning.bench import Bench, Choice
from pipeline.tuning.cpu_kind import CpuKind
from pipeline.tuning.measurement import Measurement, kept, missing

#: So many variants are measured at a time.
_PART = 4


@dataclass(frozen=True)
class Tuned:
    """What `tune` has found out.

    Attributes:
        choices: by the kind of CPU and the key of a kernel, the schedule that was the fastest.
        waiting: how many kernels were not measured, for the time was over.
        errors: what went wrong, by the name of the job.
        machines: how many machines of each kind took part.
    """

    choices: Mapping[tuple[CpuKind, str], Choice]
    waiting: int
    errors: Mapping[str, str]
    machines: Mapping[CpuKind, int]

    def __str__(self) -> str:
        faster = sum(choice.schedule != DEFAULT for choice in self.choices.values())
        where = ", ".join(f"{count} of {kind}" for kind, count in self.machines.items())
        return (
            f"{len(self.choices)} kernels measured on {where}: {faster} have a faster schedule than the default, "
            f"{self.waiting} are waiting, {len(self.errors)} failed"
        )


def tune(models: Mapping[str, Model], seconds: float, *, url: str | None = None, **options: Any) -> Tuned:
    """Measures the variants of the models' kernels, each on a machine of every kind of CPU that the cluster has.

        pipeline.ray.tune({"resnet": (model, (x,))}, seconds=600, url="s3://bucket/cache")
        exe = pipeline.compile(model, (x,), tune=0)  # on any of the machines, with PIPELINE_CACHE_URL

    Args:
        models: by name, `(model, args)` or `(model, args, kwargs)`; or functions that return these, which the machines
            call, so that weights do not pass through this one.
        seconds: how long may be measured, in all; before that the models are captured.
        url: where choices are kept, as `PIPELINE_CACHE_URL` has it, which is the default; and in the disk cache of this
            machine.
        options: of the compilations. A schedule holds for the `num_threads` and `precision` that it was measured for.

    Raises:
        OptionError: an option is unknown, a model is none, or choices would be kept nowhere.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise OptionError(f"seconds: expected a number above 0, got {seconds!r}")
    model_arguments.checked(models, {**options, "tune": 0})
    url = model_arguments.shared_url(url)
    cache = TwoLevels(open_cache(), shared_cache(url) if url else None)
    if cache.is_off:
        raise OptionError("tune: its choices would be kept nowhere; say url=..., or set PIPELINE_CACHE_URL")
    with Crew({}) as crew:
        board = _Board(cache)
        sent = model_arguments.sent(models)
        crew.submit(
            [
                CrewJob(f"capture {name} for {kind}", kind, to_measure, (model, options))
                for kind in crew.kinds
                for name, model in sent.items()
            ]
        )
        for done in crew.results():
            board.plan(done)
        crew.submit(board.jobs(options))
        for done in crew.results(seconds):
            crew.submit(board.take(done, options), first=True)
        if cache.shared is not None:
            cache.shared.flush()
        return board.tuned(crew.machines)


@dataclass
class _Kernel:
    """A kernel of a kind of CPU: how many parts of its variants are still to be measured, the best one so far."""

    kind: CpuKind
    measurement: Measurement
    parts: int = 0
    best: Choice = Choice()


@dataclass
class _Board:
    """What is known of all kernels so far."""

    cache: TwoLevels
    kernels: dict[tuple[CpuKind, str], _Kernel] = field(default_factory=dict)
    choices: dict[tuple[CpuKind, str], Choice] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    jobs_of: dict[CrewJob, _Kernel] = field(default_factory=dict)

    def plan(self, done: Done) -> None:
        """Takes the kernels of a model that nobody has measured; equal ones of several models are one."""
        if done.error is not None:
            self.errors[done.job.name] = done.error
            return
        for measurement in done.value:
            if self.cache.get(measurement.key) is not None:
                continue
            self.kernels.setdefault((done.job.kind, measurement.key), _Kernel(done.job.kind, measurement))

    def jobs(self, options: Mapping[str, Any]) -> list[CrewJob]:
        """The measurements of all kernels, the heaviest first."""
        jobs = []
        for kernel in sorted(self.kernels.values(), key=lambda one: -one.measurement.operations):
            variants = kernel.measurement.variants
            parts = [variants[first : first + _PART] for first in range(0, len(variants), _PART)]
            kernel.parts = len(parts)
            jobs += [self._job("measure", kernel, best_of, (part, options)) for part in parts]
        return jobs

    def take(self, done: Done, options: Mapping[str, Any]) -> list[CrewJob]:
        """Takes the outcome of a measurement; what is to be done next."""
        kernel = self.jobs_of.pop(done.job)
        if done.error is not None:
            self.errors[done.job.name] = done.error
            return []
        if done.value is None:  # the time was over
            return []
        if done.job.function is confirmed:
            self._keep(kernel, done.value)
            return []
        kernel.parts -= 1
        kernel.best = max(kernel.best, done.value, key=lambda choice: choice.gain)
        if kernel.parts:
            return []
        if kernel.best.schedule == DEFAULT:
            self._keep(kernel, kernel.best)
            return []
        return [self._job("confirm", kernel, confirmed, (kernel.best, options))]

    def _job(self, what: str, kernel: _Kernel, function: Any, arguments: tuple[Any, ...]) -> CrewJob:
        name = f"{what} kernel {kernel.measurement.key[:12]}"
        job = CrewJob(name, kernel.kind, function, (kernel.measurement, *arguments))
        self.jobs_of[job] = kernel
        return job

    def _keep(self, kernel: _Kernel, choice: Choice) -> None:
        key = kernel.measurement.key
        self.choices[kernel.kind, key] = choice
        self.cache.put(key, kept(choice))

    def tuned(self, machines: Mapping[CpuKind, int]) -> Tuned:
        """What has been found out by now."""
        return Tuned(self.choices, len(self.kernels) - len(self.choices), self.errors, machines)


def to_measure(model: Model, options: Mapping[str, Any], seconds: float) -> list[Measurement]:
    """On a machine: the kernels of a model, whatever its own cache has."""
    model, args, kwargs = model_arguments.arguments_of(model)
    with missing() as found:
        compiler.compile(model, args, kwargs, **{**options, "tune": 0, "cache": False})
    return found


def best_of(
    measurement: Measurement, variants: Sequence[Schedule], options: Mapping[str, Any], seconds: float
) -> Choice | None:
    """On a machine: the best of the variants of a kernel and the default; None if there was no time for all."""
    bench = Bench(Options.create(options))
    return bench.best(measurement.program, variants, bench.clock() + seconds)


def confirmed(measurement: Measurement, choice: Choice, options: Mapping[str, Any], seconds: float) -> Choice | None:
    """On a machine: the choice if it is faster there, too, else the default; None if there was no time."""
    return Bench(Options.create(options)).confirmed(measurement.program, choice) if seconds > 0 else None
