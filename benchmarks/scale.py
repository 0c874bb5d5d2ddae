"""What a plan for many machines starts from: loading, bytes, images a second, overheads; the table of docs/scale.md.

Usage: python benchmarks/scale.py [--blocks N]

Times are the shortest of several. Where programs share the machine with others, the seconds of CPU that work takes say
more than those of the clock: both are there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ray
import ray.data
import torch
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from torch import nn

import pipeline
from pipeline.ray import batches, map_batches
from pipeline.ray.crew import Crew, CrewJob
from pipeline.runtime.artifact import load_from_memory, to_bytes

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from resnet import ResNet18

BATCH = 32
MB = 1e6


def main() -> None:
    """Measures all of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=8, help="batches of 32 images for each actor")
    blocks = parser.parse_args().blocks
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    images = torch.randn(BATCH, 3, 224, 224)
    model = ResNet18().eval().requires_grad_(False)
    exe = cache(model, images)
    data = artifact(exe)
    direct(exe, images.numpy(), blocks)
    with two_nodes() as nodes:
        transfer(nodes)
        for actors in (1, 2):
            over_a_dataset(data, images.numpy(), blocks, actors)
        blocks_of_little_work()
        jobs_of_no_work()
    row("load of this machine over the last minute", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def row(what: str, value: str) -> None:
    """A line of the table."""
    print(f"| {what} | {value} |", flush=True)


def shortest(call: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest time of a call, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def cache(model: nn.Module, images: torch.Tensor) -> Any:
    """Compiles with an empty shared cache, and takes the outcome from it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PIPELINE_CACHE_URL": folder, "PIPELINE_CACHE_SIZE": "0"}
        pipeline.compile(nn.Linear(3, 3), (torch.randn(2, 3),))  # what is imported once
        begun = time.perf_counter(), sum(os.times()[:4])
        exe = pipeline.compile(model, (images,), num_threads=1)
        seconds, cpu = time.perf_counter() - begun[0], sum(os.times()[:4]) - begun[1]
        from pipeline.shared_cache import open_caches

        shared = open_caches().shared
        assert shared is not None and shared.flush()
        taken = shortest(lambda: pipeline.compile(model, (images,), num_threads=1), 3)
        size = max(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        del os.environ["PIPELINE_CACHE_URL"]
    row("ResNet-18 for 32 images: compiled", f"{seconds:.1f} s, {cpu:.1f} s of CPU")
    row("the same, taken from the shared cache (torch.export and weights are what is left)", f"{taken:.2f} s")
    row("its entry in the shared cache", f"{size / MB:.2f} MB")
    return exe


def artifact(exe: Any) -> bytes:
    """Sizes, and times to load, with what is prepared in it and without."""
    plain, ready = to_bytes(*exe.contents(), exe.name), to_bytes(*exe.contents(prepacked=True), exe.name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "net.pipeline")
        path.write_bytes(plain)
        row("its artifact", f"{len(plain) / MB:.1f} MB; with prepared weights {len(ready) / MB:.1f} MB")
        row("load from a file, weights to be prepared", f"{shortest(lambda: pipeline.load(path)) * 1e3:.0f} ms")
    array = np.frombuffer(ready, np.uint8)
    row("load from the object store, prepared", f"{shortest(lambda: load_from_memory(array)) * 1e3:.0f} ms")
    return ready


def direct(exe: Any, images: np.ndarray, blocks: int) -> None:
    """Calls in this process, one thread."""
    exe(images)
    cpu = time.process_time()
    seconds = shortest(lambda: exe(images), blocks)
    cpu = (time.process_time() - cpu) / blocks
    row("calls in one process, one thread", f"{BATCH / seconds:.1f} images/s; {BATCH / cpu:.1f} images per s of CPU")


@contextlib.contextmanager
def two_nodes() -> Iterator[list[str]]:
    """Two nodes on this machine; the identifiers of both."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        os.environ["RAY_TMPDIR"] = folder
        node = {"num_cpus": 1, "object_store_memory": 1 << 30}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield [one["NodeID"] for one in ray.nodes()]
        ray.shutdown()
        cluster.shutdown()


@ray.remote(num_cpus=0)
def fetched(references: list[Any]) -> float:
    """How long it takes until an object is there."""
    begun = time.perf_counter()
    ray.get(references[0])
    return time.perf_counter() - begun


def transfer(nodes: list[str]) -> None:
    """From one node's object store to the other's, which are of one machine here."""
    here = ray.get_runtime_context().get_node_id()
    (there,) = (node for node in nodes if node != here)
    task = fetched.options(scheduling_strategy=NodeAffinitySchedulingStrategy(there, soft=False))
    times = [ray.get(task.remote([ray.put(np.ones(100_000_000, np.uint8))])) for _ in range(4)]
    row("100 MB from node to node, by the loopback", f"{min(times):.2f} s, {0.1 / min(times):.1f} GB/s")


class Measured(batches.Inference):
    """Says what its process takes."""

    def run(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """As another column of the results, which are one number a row here."""
        begun = time.perf_counter(), time.process_time()
        made = super().run(batch)
        times = [time.perf_counter() - begun[0], time.process_time() - begun[1], time.time(), private_bytes()]
        count = len(next(iter(made.values())))
        return {"pid": np.full(count, os.getpid()), "times": np.tile(np.array(times), (count, 1))}


def private_bytes() -> float:
    """The memory that this process alone has."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Private_"))


def over_a_dataset(data: bytes, images: np.ndarray, blocks: int, actors: int) -> None:
    """So many actors of one thread each; they are warm when the clock starts."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    batches.Inference = Measured
    reference = ray.put(images)
    dataset = ray.data.from_numpy_refs([reference] * blocks * actors)
    rows = map_batches(dataset, data, batch_size=BATCH, actors=actors).take_all()
    batches.Inference = Measured.__base__
    times = np.stack([row["times"] for row in rows])[::BATCH]
    pids = np.array([row["pid"] for row in rows])[::BATCH]
    begun = max(times[pids == pid, 2].min() for pid in set(pids))
    ended = min(times[pids == pid, 2].max() for pid in set(pids))
    both = (times[:, 2] > begun) & (times[:, 2] <= ended)
    rate = both.sum() * BATCH / (ended - begun)
    name = f"map_batches, {actors} actor{'s' if actors > 1 else ''} of one thread"
    row(name, f"{rate:.1f} images/s; {BATCH / times[:, 1].mean():.1f} images per s of CPU in calls")
    row("  memory that an actor alone has", f"{np.median(times[:, 3]) / MB:.0f} MB")


def nothing(seconds: float) -> None:
    """A job."""


def blocks_of_little_work() -> None:
    """What a block costs beside its work, and the driver of it, which is one for all actors."""
    exe = pipeline.compile(nn.Linear(8, 8).requires_grad_(False), (torch.randn(4, 8),), num_threads=1)
    reference = ray.put(np.ones((4, 8), np.float32))
    for blocks in (50, 850):
        dataset = map_batches(ray.data.from_numpy_refs([reference] * blocks), exe, actors=1)
        begun = time.perf_counter(), time.process_time()
        dataset.materialize()
        times = np.array([time.perf_counter() - begun[0], time.process_time() - begun[1]])
        if blocks == 50:
            first = times
    seconds, cpu = (times - first) / 800 * 1e3
    row("a block of next to no work, one actor", f"{seconds:.1f} ms, {cpu:.1f} ms of CPU in the driver")
    row("the first blocks, with the start of the actor", f"{first[0]:.1f} s")


def jobs_of_no_work() -> None:
    """What a job of `tune` and `compile_all` costs beside its work."""
    with Crew({}) as crew:
        (kind,) = crew.kinds
        crew.submit([CrewJob("first", kind, nothing, ())])
        list(crew.results())
        crew.submit([CrewJob(str(number), kind, nothing, ()) for number in range(1000)])
        begun = time.perf_counter(), time.process_time()
        count = sum(done.error is None for done in crew.results())
        rate, cpu = count / (time.perf_counter() - begun[0]), (time.process_time() - begun[1]) / count
        row("jobs of tune and compile_all that do nothing", f"{rate:.0f}/s, {cpu * 1e3:.2f} ms of CPU in the driver")


if __name__ == "__main__":
    main()
