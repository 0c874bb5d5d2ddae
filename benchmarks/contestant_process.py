"""A process in which one contestant compiles one workload and then runs it on request; compare.py starts it.

Usage: python contestant_process.py versions KIND CONTESTANT
       python contestant_process.py run KIND CONTESTANT WORKLOAD THREADS FOLDER

`versions` prints what is installed of what the contestant needs. `run` prints a JSON line about the compilation, and
then one for each line `{"seconds": S, "cpus": [N, ...]}` that it reads: a slice of calls. It ends with its input.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import json
import os
import re
import resource
import statistics
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contestants import Contestant, Job, Run
from workload_kinds import KINDS

#: A call whose wall time is this much above its CPU time was interrupted by another process.
_DISTURBED = 1.03
_DISTURBED_SECONDS = 20e-6


def versions(contestant: Contestant) -> dict[str, Any]:
    """The version of each package that a contestant needs, and those that are missing."""
    found, missing = {}, []
    for package in contestant.packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    return {"versions": found, "missing": missing}


def compiled(contestant: Contestant, workload: Any, threads: int, folder: Path) -> tuple[Run, dict[str, float]]:
    """A call of the workload, and what it took to make, in CPU seconds and MB; its largest relative error."""
    model, inputs = workload.make(contestant.runs_python)
    job = Job(model, inputs, threads, folder)
    empty = resident()
    run, capture_cpu, build_cpu = built(contestant, job)
    held = resident() - empty
    (result, first_cpu), growth = with_growth(lambda: timed(run))
    _, usual_cpu = timed(run)
    results, wanted = contestant.arrays(result), workload.expected()
    return run, {
        "capture_cpu": capture_cpu,
        "compile_cpu": build_cpu + max(0.0, first_cpu - usual_cpu),
        "held_mb": held,
        "call_mb": growth,
        "error": error(results, wanted),
        **workload.measures(results, wanted),
    }


def built(contestant: Contestant, job: Job) -> tuple[Run, float, float]:
    """A call of the workload, and the CPU seconds of its capture and of the rest."""
    captured, capture_cpu = timed(lambda: contestant.capture(job))
    run, build_cpu = timed(lambda: contestant.build(captured, job))
    return run, capture_cpu, build_cpu


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` returns, and the CPU seconds that it took."""
    start = cpu_seconds()
    result = work()
    return result, cpu_seconds() - start


def cpu_seconds() -> float:
    """CPU seconds of this process so far, and of those that it started and waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def with_growth(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and by how many MB the resident memory grows at most meanwhile."""
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    result = call()
    return result, status("VmHWM") - before


def resident() -> float:
    """The resident memory in MB, without what has been freed."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return status("VmRSS")


def status(name: str) -> float:
    """A line of this process's status, in MB."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return float(found[1]) / 1e3


def error(results: list[Any], wanted: Sequence[Any]) -> float:
    """The largest difference from PyTorch eager in float64, in parts of the largest magnitude of that result."""
    import numpy as np

    largest = 0.0
    for got, want in zip(results, wanted, strict=True):
        if got.shape != tuple(want.shape):
            raise ValueError(f"a result has the shape {got.shape}, not {tuple(want.shape)}")
        difference = np.abs(np.asarray(got, np.float64) - want.double().numpy()).max()
        largest = max(largest, float(difference / max(want.double().abs().max().item(), 1e-30)))
        if np.isnan(difference):
            return float("inf")
    return largest


def slice_of_calls(run: Run, seconds: float, threads: int) -> dict[str, float]:
    """Calls for some seconds, one at least: how many, the median and the least seconds of those left undisturbed.

    Where all calls of one thread were disturbed, it is their CPU time that counts.
    """
    calls = []
    end = time.perf_counter() + seconds
    while True:
        cpu, start = time.process_time(), time.perf_counter()
        result = run()
        stop = time.perf_counter()
        calls.append((stop - start, time.process_time() - cpu))
        del result
        if stop > end:
            break
    quiet = [wall for wall, cpu in calls if threads > 1 or wall < cpu * _DISTURBED + _DISTURBED_SECONDS]
    times = quiet or [cpu for _, cpu in calls]
    return {"calls": len(calls), "quiet": len(quiet), "median": statistics.median(times), "best": min(times)}


def move(cpus: list[int]) -> None:
    """Moves all threads of this process to these processors."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cpus)


def serve(
    kind: str, name: str, workload: str, threads: int, folder: Path, answer: Callable[[dict[str, Any]], None]
) -> None:
    """Compiles, and answers requests until there are no more."""
    import torch

    contestant = KINDS[kind].contestants[name]
    contestant.preload()
    torch.set_num_threads(threads)
    with _gradients(contestant):
        with tempfile.TemporaryDirectory(dir=folder) as own:
            run, report = compiled(contestant, KINDS[kind].workloads()[workload], threads, Path(own))
        answer(report)
        for line in sys.stdin:
            request = json.loads(line)
            move(request["cpus"])
            answer(slice_of_calls(run, request["seconds"], threads))


def _gradients(contestant: Contestant) -> Any:
    """The mode of autograd that calls run in."""
    import torch

    if contestant.trains:
        return torch.enable_grad()
    return torch.inference_mode() if contestant.runs_python else torch.no_grad()  # exporters cannot do with the former


def main() -> None:
    warnings.filterwarnings("ignore")
    command, kind, name, *rest = sys.argv[1:]
    if command == "versions":
        print(json.dumps(versions(KINDS[kind].contestants[name])))
        return
    private = os.dup(1)
    os.dup2(2, 1)  # libraries print what they like

    def answer(message: dict[str, Any]) -> None:
        os.write(private, json.dumps(message).encode() + b"\n")

    workload, threads, folder = rest
    try:
        serve(kind, name, workload, int(threads), Path(folder), answer)
    except Exception as problem:
        traceback.print_exc()
        answer({"failure": f"{type(problem).__name__}: {problem}"[:600]})
    os._exit(0)  # some libraries crash as they are taken down


if __name__ == "__main__":
    main()
