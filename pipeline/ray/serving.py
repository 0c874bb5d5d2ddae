"""A model behind Ray Serve: requests are rows, and those that come at about the same time are one batch."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ray import serve

from pipeline.errors import ArgumentError, OptionError, PipelineError
from pipeline.ray.artifacts import artifact_bytes, is_artifact
from pipeline.ray.rows import RowModel, RowPlan
from pipeline.runtime.artifact import load_from_memory, signature_of
from pipeline.runtime.call.numpy_arrays import NumpyArrays

#: The rows of a batch, where neither the caller nor the artifact says.
_BATCH = 32

#: A row: an array for each argument of the model, without the first dim.
Row = Mapping[str, np.ndarray]


def deployment(
    artifact: Any, *, max_batch_size: int | None = None, wait: float = 0.01, threads: int = 1, **options: Any
) -> serve.Application:
    """An application of Ray Serve that answers for a model, row by row.

        serve.run(pipeline.ray.deployment("s3://bucket/resnet.pipeline", num_replicas=8))

    It takes POST requests of JSON, `{"x": [...]}` by the names of the arguments or the one argument alone, and answers
    `{"output": [...]}`; a request that does not fit gets status 400 and a sentence. A handle calls
    `handle.infer.remote(x)`, with arrays of the model's dtypes, and gets a dict of arrays.

    Args:
        artifact: the path or URL of an artifact, which every replica reads, its bytes, or an `Executable`.
        max_batch_size: the most rows of a call; by default those that it was compiled for, else 32. Batches of a model
            that was compiled for one size are filled up.
        wait: for how many seconds the first request of a batch waits for others at most.
        threads: the cores of a replica, and the threads of its calls.
        options: of `serve.deployment`: `num_replicas`, `autoscaling_config` and so on.

    Raises:
        ArgumentError: the model does not take rows.
        ArtifactError: the artifact cannot be read.
        OptionError: a number is none.
    """
    if not is_artifact(artifact):
        raise OptionError(f"artifact: expected an artifact or an Executable, got {type(artifact).__name__}: compile it")
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise OptionError(f"threads: expected a number from 1, got {threads!r}")
    data = artifact_bytes(artifact)
    plan = RowPlan.of(signature_of(data))
    size = max_batch_size or plan.size or _BATCH
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise OptionError(f"max_batch_size: expected a number from 1, got {size!r}")
    settings = {"max_ongoing_requests": 4 * size, "ray_actor_options": {"num_cpus": threads}, **options}
    kept = str(artifact) if isinstance(artifact, str | Path) else data
    return serve.deployment(ModelServer, **settings).bind(kept, size, wait, threads)


class ModelServer:
    """What a replica does."""

    def __init__(self, artifact: str | bytes, max_batch_size: int, wait: float, threads: int):
        data = artifact if isinstance(artifact, bytes) else artifact_bytes(artifact)
        executable = load_from_memory(data)
        executable.num_threads = threads
        names = [one.name for one in executable.signature.arguments if one.kind == "tensor"]
        self._model = RowModel(executable, RowPlan.of(executable.signature, dict(zip(names, names, strict=True))))
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._together.set_max_batch_size(max_batch_size)
        self._together.set_batch_wait_timeout_s(wait)

    async def infer(self, *args: np.ndarray, **kwargs: np.ndarray) -> dict[str, np.ndarray]:
        """The results for one row, an array for each argument; raises `ArgumentError` if they do not fit."""
        return await self._answer(self._named(args, kwargs))

    async def __call__(self, request: Any) -> Any:
        """Answers a request by HTTP."""
        from starlette.responses import JSONResponse

        try:
            said = await request.json()
            given = said if isinstance(said, dict) else dict.fromkeys(self._types(), said)
            row = {name: self._array(name, value) for name, value in given.items()}
            results = await self._answer(self._named((), row))
        except (ValueError, PipelineError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return JSONResponse({name: value.tolist() for name, value in results.items()})

    def _types(self) -> dict[str, Any]:
        arguments = self._model.plan.signature.arguments
        return {argument.name: argument.type for argument in arguments if argument.kind == "tensor"}

    def _array(self, name: str, value: Any) -> np.ndarray:
        """A value of JSON's as the array that the model takes."""
        kind = self._types().get(name)
        try:
            return np.asarray(value, None if kind is None else NumpyArrays.dtypes[kind.dtype])
        except (ValueError, TypeError, OverflowError) as error:
            raise ArgumentError(f"argument {name}: {error}") from None

    def _named(self, args: Sequence[np.ndarray], kwargs: Mapping[str, np.ndarray]) -> Row:
        """The row by names, each array checked, so that one request cannot spoil the batch of others."""
        types = self._types()
        row = {**dict(zip(types, args, strict=False)), **kwargs}
        if row.keys() != types.keys() or len(args) + len(kwargs) != len(types):
            raise ArgumentError(f"expected the arguments {', '.join(types)}, got {', '.join(row) or 'none'}")
        return self._model.checked_row(row)

    async def _answer(self, row: Row) -> dict[str, np.ndarray]:
        answer = await self._together(row)
        if isinstance(answer, PipelineError):
            raise answer
        return answer

    @serve.batch
    async def _together(self, rows: list[Row]) -> list[dict[str, np.ndarray] | PipelineError]:
        """The results of several rows, each its own or what is wrong with it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answers, rows)

    def _answers(self, rows: list[Row]) -> list[dict[str, np.ndarray] | PipelineError]:
        alike = collections.defaultdict(list)  # rows of different sizes go into different calls
        for number, row in enumerate(rows):
            alike[tuple(array.shape for array in row.values())].append(number)
        answers: dict[int, dict[str, np.ndarray] | PipelineError] = {}
        for numbers in alike.values():
            answers |= zip(numbers, self._call([rows[number] for number in numbers]), strict=True)
        return [answers[number] for number in range(len(rows))]

    def _call(self, rows: list[Row]) -> list[dict[str, np.ndarray] | PipelineError]:
        try:
            results = self._model({name: np.stack([row[name] for row in rows]) for name in rows[0]})
        except PipelineError as error:
            if len(rows) == 1:
                return [error]
            return [answer for row in rows for answer in self._call([row])]
        return [{name: column[number] for name, column in results.items()} for number in range(len(rows))]
