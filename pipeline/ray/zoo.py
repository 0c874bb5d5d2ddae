"""Compiling many models on many machines: one job a model and kind of CPU, outcomes in the shared cache."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline import compiler, timing
from pipeline.errors import OptionError, PipelineError
from pipeline.ray import models as model_arguments
from pipeline.ray.artifacts import artifact_bytes, write
from pipeline.ray.crew import Crew, CrewJob, Done
from pipeline.ray.models import Model
from pipeline.shared_cache import shared_cache
from pipeline.tuning.cpu_kind import CpuKind
from pipeline.url_files import open_folder

#: The cores of a worker: more of them are of use to the largest models alone.
_CORES = 2


@dataclass(frozen=True)
class Compiled:
    """What became of a model.

    Attributes:
        name: of the model.
        kind: the CPU that it was compiled on, which its code is for unless the option `cpu` names another.
        seconds: how long the job took, on the machine.
        was_kept: whether the shared cache had the outcome before.
        kernels: how many there are.
        artifact: where it was written, if it was.
        error: why there is nothing, else None.
        attempts: how often it was begun; more than once where machines were lost.
    """

    name: str
    kind: CpuKind
    seconds: float = 0.0
    was_kept: bool = False
    kernels: int = 0
    artifact: str | None = None
    error: str | None = None
    attempts: int = 1


def compile_all(
    models: Mapping[str, Model],
    *,
    url: str | None = None,
    artifacts: str | None = None,
    **options: Any,
) -> list[Compiled]:
    """Compiles models, each on a machine of every kind of CPU that the cluster has, or on one where `cpu` names a kind.

        pipeline.ray.compile_all({"resnet": build_resnet, "bert": build_bert}, url="s3://bucket/cache")

    What is compiled lies in the shared cache: a compilation of the same model on any machine of the kind that has
    `PIPELINE_CACHE_URL` takes it from there. A model that fails is in the result with its error, and stops no other.

    Args:
        models: as `tune` takes them.
        url: of the shared cache; by default `PIPELINE_CACHE_URL`.
        artifacts: a folder, by path or URL, to write artifacts to, as `<model>/<cpu>.pipeline`.
        options: of the compilations.

    Raises:
        OptionError: an option is unknown, a model is none, a URL is none, or what is compiled would be kept nowhere.
    """
    model_arguments.checked(models, options)
    url = model_arguments.shared_url(url)
    if url is None and artifacts is None:
        raise OptionError("compile_all: what it compiles would be kept nowhere; say url=... or artifacts=...")
    for place in filter(None, (url, artifacts)):
        open_folder(place)
    with Crew(model_arguments.environment(url), cores=_CORES) as crew:
        names = {}
        for number, (name, model) in enumerate(model_arguments.sent(models).items()):
            kinds, is_native = crew.kinds, options.get("cpu", "native") == "native"
            for kind in kinds if is_native else [kinds[number % len(kinds)]]:
                names[CrewJob(f"compile {name}", kind, compiled, (model, name, kind, url, artifacts, options))] = name
        crew.submit(list(names))
        return [_outcome(done, names[done.job]) for done in crew.results()]


def _outcome(done: Done, name: str) -> Compiled:
    if done.error is not None:
        return Compiled(name, done.job.kind, done.seconds, error=done.error, attempts=done.attempts)
    outcome: Compiled = done.value
    return replace(outcome, seconds=done.seconds, attempts=done.attempts)


def compiled(
    model: Model,
    name: str,
    kind: CpuKind,
    url: str | None,
    artifacts: str | None,
    options: Mapping[str, Any],
    seconds: float,
) -> Compiled:
    """On a machine: compiles a model, and writes its artifact if that is wanted."""
    model, args, kwargs = model_arguments.arguments_of(model)
    with timing.collect() as times:
        executable = compiler.compile(model, args, kwargs, **options)
    was_kept = times.find("machine code") is None
    path = None
    if artifacts is not None:
        path = f"{artifacts.rstrip('/')}/{_file_name(name)}/{options.get('cpu', kind.cpu)}.pipeline"
        write(path, artifact_bytes(executable))
    if url is not None:
        cache = shared_cache(url)
        if not cache.flush() or cache.problem:
            raise PipelineError(cache.problem or f"the shared cache {url} takes too long to write to")
    return Compiled(name, kind, was_kept=was_kept, kernels=len(executable.kernels), artifact=path)


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)
