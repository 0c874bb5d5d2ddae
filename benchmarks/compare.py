"""Compares pipeline with PyTorch and other compilers: time, error, compile time and memory of calls.

Usage: python benchmarks/compare.py [--contestants NAME,...] [--python NAME,...=PATH] [--write] [WORKLOAD ...]

Every contestant (contestants.py) compiles every workload (workloads.py) in a process of its own. Then these run slices
of calls in turn, A B C A B C, on one processor while nothing else runs, so that ratios hold where the machine's speed
drifts. What is not installed is left out; `--python iree=/some/venv/bin/python` names the Python that has it.

Outcomes are lines of JSON in a file; what it has already is measured again only where workloads are named. Tables of
them are printed (report.py), and with `--write` put into docs/performance.md with a picture. With `--training` calls
are steps of training (training_*.py), and the tables go to docs/training.md; with `--language` they are steps and
prompts of a language model (language_*.py), for docs/generation.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from contestants import Contestant
from environment import installed, machine
from report import Lines
from rich.console import Console
from workload_kinds import KINDS

FOLDER = Path(__file__).resolve().parent

#: A slice of calls; how many each contestant has of a workload, at least and at most; when it has had enough of them.
SLICE_SECONDS = 0.03
FEWEST_SLICES, MOST_SLICES = 3, 15
ENOUGH_SECONDS = 3.0

COMPILE_SECONDS, CALL_SECONDS = 300, 60

#: glibc gives large blocks back to the system and gets zeroed pages again, unless it is told not to.
MALLOC_TUNED = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


class Failure(Exception):
    """A contestant could not compile or run a workload; says why."""


@dataclass(frozen=True)
class Settings:
    """How all contestants run.

    Attributes:
        pythons: the Python of each contestant.
        cpus: the processors that calls run on, one for each thread.
        malloc_tuned: whether malloc keeps the memory that it has got.
        warm: whether contestants with a cache compile again in a second process.
        kind: of the workloads.
    """

    pythons: dict[str, str]
    cpus: tuple[int, ...]
    malloc_tuned: bool = False
    warm: bool = True
    kind: str = "inference"

    @property
    def contestants(self) -> Mapping[str, Contestant]:
        """Who may take part."""
        return KINDS[self.kind].contestants

    @property
    def threads(self) -> int:
        """How many threads each contestant may use."""
        return len(self.cpus)

    def environment(self, contestant: str, folder: Path) -> dict[str, str]:
        """The environment variables of a contestant's process."""
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        threads = dict.fromkeys(names, str(self.threads))
        malloc = MALLOC_TUNED if self.malloc_tuned else {}
        own = self.contestants[contestant].settings(folder, folder.parent)
        return {**os.environ, "PYTHONPATH": str(FOLDER.parent), **threads, **malloc, **own}


class Process:
    """A contestant's process for one workload (contestant_process.py)."""

    def __init__(self, contestant: str, workload: str, settings: Settings, folder: Path):
        script = str(FOLDER / "contestant_process.py")
        command = [settings.pythons[contestant], script, "run", settings.kind, contestant, workload]
        self._log = (folder / "log").open("w+b")
        self._process = subprocess.Popen(
            [*command, str(settings.threads), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=settings.environment(contestant, folder),
        )

    def answer(self, seconds: float) -> dict[str, float]:
        """The next line that it prints; raises `Failure` if there is none in time."""
        output = _opened(self._process.stdout)
        if not select.select([output], [], [], seconds)[0]:
            raise Failure(f"took more than {seconds:g} s")
        line = output.readline()
        if not line:
            raise Failure(f"died with {self._process.wait()}: {self._last_words()}")
        answer = json.loads(line)
        if "failure" in answer:
            raise Failure(answer["failure"])
        return answer

    def ask(self, **request: Any) -> dict[str, float]:
        """The answer to a request."""
        with contextlib.suppress(BrokenPipeError):  # `answer` says what it died of
            source = _opened(self._process.stdin)
            source.write(json.dumps(request).encode() + b"\n")
            source.flush()
        return self.answer(CALL_SECONDS + request["seconds"])

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(BrokenPipeError):
                _opened(file).close()

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "")[:300]


def _opened(file: IO[bytes] | None) -> IO[bytes]:
    assert file is not None
    return file


@dataclass
class Entry:
    """A contestant in the race for one workload: its process, what is known of it, its slices so far."""

    process: Process | None
    outcome: dict[str, Any]
    slices: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0

    def run_slice(self, cpus: tuple[int, ...]) -> None:
        """Runs one more slice, unless it has had enough."""
        if self.process is None or (len(self.slices) >= FEWEST_SLICES and self.seconds > ENOUGH_SECONDS):
            return
        start = time.perf_counter()
        try:
            self.slices.append(self.process.ask(seconds=SLICE_SECONDS, cpus=cpus))
        except Failure as failure:
            self.close()
            self.outcome["failure"] = str(failure)
        self.seconds += time.perf_counter() - start

    def close(self) -> None:
        """Ends its process."""
        if self.process is not None:
            self.process.close()
        self.process = None


def compiled(contestant: str, workload: str, settings: Settings, scratch: Path) -> Entry:
    """A contestant that has compiled a workload with an empty cache, or has failed to."""
    folder = scratch / contestant / workload
    folder.mkdir(parents=True)
    process = Process(contestant, workload, settings, folder)
    try:
        outcome: dict[str, Any] = process.answer(COMPILE_SECONDS)
        if settings.warm and settings.contestants[contestant].has_cache:
            outcome |= _warm(contestant, workload, settings, folder)
    except Failure as failure:
        process.close()
        return Entry(None, {"failure": str(failure)})
    return Entry(process, outcome)


def _warm(contestant: str, workload: str, settings: Settings, folder: Path) -> dict[str, float]:
    """What a compilation costs, capture apart, in a new process that finds the first one's outcome.

    The lesser of two such costs: before the first one a virtual machine may have to ask its host for memory.
    """
    tries = []
    for _ in range(2):
        with contextlib.closing(Process(contestant, workload, settings, folder)) as again:
            tries.append(again.answer(COMPILE_SECONDS))
    found = min(tries, key=lambda one: one["compile_cpu"])
    return {"warm_cpu": found["compile_cpu"], "warm_held_mb": found["held_mb"], "warm_call_mb": found["call_mb"]}


def race(workload: str, settings: Settings, scratch: Path) -> Iterator[dict[str, Any]]:
    """The outcome of each contestant."""
    with contextlib.ExitStack() as exits:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            entries = dict(
                zip(
                    settings.pythons,
                    pool.map(lambda name: compiled(name, workload, settings, scratch), settings.pythons),
                    strict=True,
                )
            )
        for entry in entries.values():
            exits.callback(entry.close)
        for _ in range(1 + MOST_SLICES):
            for entry in entries.values():
                entry.run_slice(settings.cpus)
        for name, entry in entries.items():
            yield {
                "workload": workload,
                "contestant": name,
                "threads": settings.threads,
                "malloc_tuned": settings.malloc_tuned,
                **entry.outcome,
                **times(entry.slices, entries["eager"].slices),
            }


def times(slices: list[dict[str, float]], eager: list[dict[str, float]]) -> dict[str, float]:
    """The time of a call in ms, and how many times as fast as eager's it is: in the same rounds, the first apart."""
    if len(slices) < 2:
        return {}
    pairs = list(zip(eager[1:], slices[1:], strict=False))
    return {
        "ms": 1e3 * statistics.median(one["median"] for one in slices[1:]),
        "best_ms": 1e3 * min(one["best"] for one in slices),
        "quiet": sum(one["quiet"] for one in slices) / sum(one["calls"] for one in slices),
        **({"ratio": statistics.median(base["median"] / one["median"] for base, one in pairs)} if pairs else {}),
    }


def chosen_pythons(arguments: argparse.Namespace, console: Console) -> tuple[dict[str, str], dict[str, str]]:
    """The Python of each contestant that is there, and the versions; says who is not. Eager is always in it."""
    given = {}
    for text in arguments.python:
        names, _, path = text.partition("=")
        given |= dict.fromkeys(names.split(","), path)
    there = KINDS[arguments.kind].contestants
    usual = [name for name, one in there.items() if one.by_default]
    wanted = arguments.contestants.split(",") if arguments.contestants else usual
    for name in [*wanted, *given]:
        if name not in there:
            sys.exit(f"unknown contestant {name!r}; there are: {', '.join(there)}")
    pythons, versions = {}, {}
    for name in dict.fromkeys(["eager", *wanted]):
        python = given.get(name, sys.executable)
        found = installed(arguments.kind, name, python)
        if found["missing"]:
            missing = ", ".join(found["missing"])
            console.print(f"{name} is left out: {python} has no {missing}", soft_wrap=True)
            continue
        pythons[name] = python
        package = there[name].packages[0]
        versions[package] = found["versions"][package]
    return pythons, versions


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="by default those that the file has not")
    kinds = parser.add_mutually_exclusive_group()
    for kind, of_what in (("training", "steps of training"), ("language", "language models")):
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=of_what)
    parser.add_argument("--contestants", metavar="NAME,...", help="default: all but those in bf16")
    parser.add_argument("--python", action="append", default=[], metavar="NAME,...=PATH", help="who runs contestants")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--malloc-tuned", action="store_true", help="malloc keeps the memory that it has got")
    parser.add_argument("--no-warm", action="store_true", help="do not compile again with a full cache")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: one for each kind, in build/")
    parser.add_argument("--report", action="store_true", help="measure nothing, print the tables of the file")
    parser.add_argument("--write", action="store_true", help="put tables and picture into docs/")
    chosen = parser.parse_args(arguments)
    chosen.kind = chosen.kind or "inference"
    chosen.output = chosen.output or KINDS[chosen.kind].output
    return chosen


def measure(arguments: argparse.Namespace, console: Console) -> None:
    """Measures what the file of outcomes does not have yet."""
    workloads = KINDS[arguments.kind].workloads()
    for name in arguments.workloads:
        if name not in workloads:
            sys.exit(f"unknown workload {name!r}; there are: {', '.join(workloads)}")
    cpus = tuple(sorted(os.sched_getaffinity(0)))[: arguments.threads]
    if len(cpus) < arguments.threads:
        sys.exit(f"--threads {arguments.threads}: there are {len(cpus)} processors")
    pythons, versions = chosen_pythons(arguments, console)
    settings = Settings(pythons, cpus, arguments.malloc_tuned, not arguments.no_warm, arguments.kind)
    lines = Lines(arguments.output)
    lines.append({"machine": machine(versions)})
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        for name in arguments.workloads or workloads:
            if not arguments.workloads and lines.has(name, pythons, settings.threads, settings.malloc_tuned):
                continue
            with console.status(name):
                for outcome in race(name, settings, Path(scratch)):
                    lines.append(outcome)
                    console.print(_summary(outcome), highlight=False, soft_wrap=True)


def _summary(outcome: dict[str, Any]) -> str:
    head = f"{outcome['workload']:20} {outcome['contestant']:12}"
    if "failure" in outcome:
        return f"{head} {outcome['failure']}"
    ratio = f"{outcome['ratio']:6.2f}x" if "ratio" in outcome else ""
    return f"{head} {outcome.get('ms', 0):9.4f} ms {ratio}  error {outcome['error']:.0e}"


def main(arguments: list[str]) -> None:
    """Measures, and prints or writes the tables."""
    chosen = parse(arguments)
    console = Console()
    if not chosen.report:
        measure(chosen, console)
    report, lines = KINDS[chosen.kind].report(), Lines(chosen.output)
    print(report.tables(lines))
    if chosen.write:
        report.write_page(lines, console)


if __name__ == "__main__":
    main(sys.argv[1:])
