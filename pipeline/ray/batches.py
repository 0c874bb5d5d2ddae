"""A model over a dataset: actors of Ray Data that hold an artifact, each on cores of its own.

Ray Data does what it does well: it reads in a stream, starts and ends actors, keeps what is ahead of a slow consumer
within the object store, shows how far it is, and has the blocks of a dead actor done again by another one. What is
added here is the artifact's way into the actors and the tensors' way into the model: no bytes are copied on either.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray
import ray.data

from pipeline.errors import ArgumentError, OptionError, PipelineError
from pipeline.ray.artifacts import artifact_bytes, is_artifact
from pipeline.ray.attempts import Attempts, name_of
from pipeline.ray.cores import claim
from pipeline.ray.rows import Columns, RowModel, RowPlan
from pipeline.runtime.artifact import load_from_memory, signature_of

#: The rows of a batch, where neither the caller nor the artifact says.
_BATCH = 32


def map_batches(
    dataset: ray.data.Dataset,
    model: Any,
    *,
    batch_size: int | None = None,
    columns: Columns = None,
    outputs: Sequence[str] | None = None,
    threads: int = 1,
    actors: int | tuple[int, int] | None = None,
    retries: int = 3,
    **options: Any,
) -> ray.data.Dataset:
    """The dataset with what a model makes of its rows: the columns that the model reads go, its results come.

        images = ray.data.read_parquet("s3://bucket/images")
        images = pipeline.ray.map_batches(images, "resnet.pipeline", columns={"x": "image"}, outputs=["logits"])
        images.write_parquet("s3://bucket/logits")

    As everything of Ray Data it is lazy: it runs when the rows are read or written. Rows come once each, whatever dies.

    Args:
        dataset: of Ray Data.
        model: the path or URL of an artifact, its bytes, an `Executable`, or a model, which is compiled for batches of
            `batch_size` rows as the dataset has them. An artifact is for one kind of CPU; `cpu="x86-64-v3"` compiles
            for most.
        batch_size: the rows of a call; by default those that the artifact was compiled for, else 32. A model that was
            compiled for batches of one size is called on such alone: the last one of a block is filled up.
        columns: the columns that the arguments of the model are, in order or by their names; by default those that are
            called like them, or the only one.
        outputs: names for the columns of the results, in order; by default their keys, or `output`, `output_1`.
        threads: how many cores an actor has, and threads its calls.
        actors: how many there are, or the least and the most; by default as many as cores are free.
        retries: how often a batch that ends its process is tried again on a machine, until that is an error. What
            machines had that are gone is done again by others, as often as it takes.
        options: of the compilation, where it is a model.

    Raises:
        ArgumentError: the model does not take rows, or columns are missing; says which. A column of another dtype or
            shape is found while the dataset runs, which ends then.
        ArtifactError: the artifact cannot be read. That this CPU cannot run it is found while the dataset runs.
        OptionError: `threads`, `actors`, `batch_size` or `retries` is no such number, or there are options for an
            artifact.
    """
    _check_numbers(dataset, batch_size=batch_size, threads=threads, retries=retries)
    if is_artifact(model):
        if options:
            raise OptionError(f"{min(options)}: an option of compilations, and the artifact is compiled already")
    else:
        model = _compiled(dataset, model, batch_size or _BATCH, columns, {"num_threads": threads, **options})
    data = artifact_bytes(model)
    plan = RowPlan.of(signature_of(data), columns, outputs)
    schema = dataset.schema(fetch_if_missing=False)
    if schema is not None:
        plan.columns_of(schema.names)
    return _mapped(dataset, data, plan, batch_size or plan.size or _BATCH, threads, _pool(actors), retries)


def _mapped(
    dataset: ray.data.Dataset,
    data: bytes,
    plan: RowPlan,
    batch_size: int,
    threads: int,
    pool: ray.data.ActorPoolStrategy,
    retries: int,
) -> ray.data.Dataset:
    return dataset.map_batches(
        Inference,
        fn_constructor_args=(ray.put(np.frombuffer(data, np.uint8)), plan, threads, retries, uuid.uuid4().hex),
        batch_size=batch_size,
        batch_format="numpy",
        zero_copy_batch=True,
        compute=pool,
        num_cpus=threads,
        udf_modifying_row_count=False,
    )


class Inference:
    """What an actor does: it loads the artifact where it lies in the object store, and calls it on batches."""

    def __init__(self, artifact: ray.ObjectRef, plan: RowPlan, threads: int, retries: int, run: str):
        executable = load_from_memory(ray.get(artifact))
        executable.num_threads = threads
        self._model = RowModel(executable, plan)
        self._threads, self._retries = threads, retries
        self._attempts = Attempts(run)
        self._is_pinned = False

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs a batch; raises `PipelineError` if it has ended too many processes of this machine."""
        self._pin()
        work = name_of(batch)
        ended = self._attempts.ended_by(work)
        if ended > self._retries:
            raise PipelineError(f"a batch has ended {ended} processes, and is not tried again: {_said(batch)}")
        with self._attempts.doing(work):
            return self.run(batch)

    def run(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns that the model does not read, and those that it makes."""
        read = self._model.plan.columns_of(list(batch)).values()
        kept = {name: column for name, column in batch.items() if name not in read}
        for name in self._model.plan.outputs:
            if name in kept:
                raise ArgumentError(f"output {name}: the dataset has a column of that name; say outputs=[...]")
        return {**kept, **self._model(batch)}

    def _pin(self) -> None:
        """Keeps the thread that calls the model, and the team that it will start, on cores of this process.

        A single thread is left to the system, which finds it a core as well.
        """
        if not self._is_pinned:
            self._is_pinned = True
            cores = claim(self._threads) if self._threads > 1 else ()
            if cores:
                os.sched_setaffinity(0, cores)


def _said(batch: Mapping[str, np.ndarray]) -> str:
    """The first row, as far as it is short."""
    short = [f"{name} is {column[0]!s:.40}" for name, column in batch.items() if column.ndim == 1]
    return f"its first row's {', '.join(short)}" if short else "none of its columns has numbers or text"


def _check_numbers(dataset: Any, **numbers: int | None) -> None:
    if not isinstance(dataset, ray.data.Dataset):
        raise ArgumentError(f"dataset: expected a Dataset of ray.data, got {type(dataset).__name__}")
    for name, number in numbers.items():
        least = 0 if name == "retries" else 1
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < least):
            raise OptionError(f"{name}: expected a number from {least}, got {number!r}")


def _pool(actors: int | tuple[int, int] | None) -> ray.data.ActorPoolStrategy:
    if actors is None:
        return ray.data.ActorPoolStrategy(min_size=1)
    try:
        if isinstance(actors, int):
            return ray.data.ActorPoolStrategy(size=actors)
        least, most = actors
        return ray.data.ActorPoolStrategy(min_size=least, max_size=most)
    except (TypeError, ValueError):
        raise OptionError(f"actors: expected a number, or the least and the most, got {actors!r}") from None


def _compiled(dataset: ray.data.Dataset, model: Any, rows: int, columns: Columns, options: Mapping[str, Any]) -> Any:
    """An executable of a model for batches of so many rows; the first ones of the dataset are the example."""
    import torch

    import pipeline

    try:
        table = dataset.take_batch(rows, batch_format="numpy")
    except ValueError:
        raise ArgumentError("the dataset has no rows, by which a model is compiled") from None
    names = list(table) if columns is None else list(columns.values() if isinstance(columns, Mapping) else columns)
    if columns is None and len(names) != 1:
        raise ArgumentError(f"columns: the dataset has {', '.join(names)}; say which the model takes")
    example = []
    for name in names:
        if name not in table:
            raise ArgumentError(f"column {name}: there is none; the columns are {', '.join(table)}")
        if table[name].dtype.kind not in "biufc":
            raise ArgumentError(f"column {name}: its rows have different shapes or no numbers")
        example.append(torch.from_numpy(np.resize(table[name], (rows, *table[name].shape[1:]))))
    if isinstance(columns, Mapping):
        return pipeline.compile(model, (), dict(zip(columns, example, strict=True)), fallback="error", **options)
    return pipeline.compile(model, tuple(example), fallback="error", **options)
