"""A process of one contestant that compiles cases and calls them on request; race.py starts it.

Usage: python -m shapes.worker CONTESTANT FOLDER

It reads requests, a JSON line each, and answers each with one: `{"case": NAME, "dtype": D, "threads": N}` compiles a
case, and says how far its results are off; `{"seconds": S}` calls what was compiled last. Eager writes what others are
judged by to the folder: its results, and those in float64.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from contestant_process import move
from contestants import Job, Run

from shapes.entrants import ENTRANTS, Entrant
from shapes.families import CASES
from shapes.judge import judged

#: A batch of calls takes at least this long, so that the clock's own cost is nothing beside it.
_BATCH_SECONDS = 1e-3


class Worker:
    """What a contestant has compiled last."""

    def __init__(self, entrant: Entrant, folder: Path):
        self.entrant, self.folder = entrant, folder
        self._run: Run | None = None
        self._threads = 1
        self._calls = 1

    def compile(self, case: str, dtype: str, threads: int) -> dict[str, Any]:
        """Compiles a case and judges its results; how many CPU seconds that took."""
        self._run = None
        torch._dynamo.reset()
        gc.collect()
        torch.set_num_threads(threads)
        model, inputs = CASES[case].make(self.entrant.computes_in(dtype))
        start = time.process_time()
        job = Job(model, inputs, threads, self.folder)
        contestant = self.entrant.contestant(dtype)
        self._run = contestant.build(contestant.capture(job), job)
        seconds = time.process_time() - start
        results = [_as_tensor(one) for one in _arrays(contestant, self._run())]
        self._threads = threads
        self._calls = self._batch()
        reference = self.folder / "reference.pt"
        answer: dict[str, Any] = {"compile_cpu": seconds}
        if self.entrant.name == "eager":
            exact = _flat(_exactly(case, dtype))
            torch.save((exact, results), reference)
            return answer | _work(CASES[case], dtype, model, inputs, results)
        exact, eager = torch.load(reference)
        return answer | judged(results, exact, eager, dtype).as_fields()

    def _batch(self) -> int:
        """How many calls make a batch."""
        assert self._run
        start = time.perf_counter()
        self._run()
        once = time.perf_counter() - start
        return max(1, min(10_000, round(_BATCH_SECONDS / max(once, 1e-7))))

    def slice(self, seconds: float, cpus: list[int]) -> dict[str, float]:
        """The least seconds of a call over batches, by the clock and of this process's CPU time."""
        move(cpus)
        assert self._run
        run, count = self._run, self._calls
        end = time.perf_counter() + seconds
        wall = cpu = float("inf")
        while True:
            cpu_start, start = time.process_time(), time.perf_counter()
            for _ in range(count):
                run()
            stop = time.perf_counter()
            wall = min(wall, (stop - start) / count)
            cpu = min(cpu, (time.process_time() - cpu_start) / count)
            if stop > end:
                return {"wall": wall, "cpu": cpu}


def _arrays(contestant: Any, results: Any) -> list[Any]:
    """The results of a call, flat."""
    if isinstance(results, torch.Tensor):
        return [results]
    if isinstance(results, (tuple, list)) and all(isinstance(one, torch.Tensor) for one in results):
        return list(results)
    return contestant.arrays(results)


def _as_tensor(result: Any) -> torch.Tensor:
    return result.clone() if isinstance(result, torch.Tensor) else torch.as_tensor(result).clone()


def _flat(results: Any) -> list[torch.Tensor]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _exactly(case: str, dtype: str) -> Any:
    """The results in float64, of the weights and inputs that `dtype` has."""
    model, inputs = CASES[case].make(dtype)
    return model.double()(*(one.double() if one.is_floating_point() else one for one in inputs))


def _work(case: Any, dtype: str, model: torch.nn.Module, inputs: Any, results: list[torch.Tensor]) -> dict[str, float]:
    """Floating-point operations of products and convolutions, and bytes of inputs, weights and results, each once.

    Of an embedding's table a few lines are read, as many as are written.
    """
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    with counter:
        model(*inputs)
    modules = (module for module in model.modules() if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)))
    tables = {id(module.weight) for module in modules}
    weights = (one for one in model.parameters() if id(one) not in tables)
    tensors = [*inputs, *weights, *model.buffers(), *results]
    moved = sum(one.numel() * one.element_size() for one in tensors)
    return {"flops": counter.get_total_flops(), "bytes": moved}


def serve(worker: Worker, answer: Callable[[dict[str, Any]], None]) -> None:
    """Answers requests until there are no more."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            with torch.inference_mode() if worker.entrant.in_inference_mode else torch.no_grad():
                answer(worker.slice(**request) if "seconds" in request else worker.compile(**request))
        except Exception as problem:
            traceback.print_exc()
            answer({"failure": f"{type(problem).__name__}: {problem}"[:600]})


def main() -> None:
    warnings.filterwarnings("ignore")
    name, folder = sys.argv[1:]
    private = os.dup(1)
    os.dup2(2, 1)  # libraries print what they like

    def answer(message: dict[str, Any]) -> None:
        os.write(private, json.dumps(message).encode() + b"\n")

    entrant = ENTRANTS[name]
    entrant.contestant("f32").preload()
    answer({"ready": True})
    serve(Worker(entrant, Path(folder)), answer)
    os._exit(0)  # some libraries crash as they are taken down


if __name__ == "__main__":
    main()
