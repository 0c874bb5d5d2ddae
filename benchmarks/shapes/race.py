"""Races of one case: processes of contestants, which compile it side by side and then call it in turns."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contestants import CONTESTANTS

from shapes.case import Case

FOLDER = Path(__file__).resolve().parents[1]

COMPILE_SECONDS, CALL_SECONDS, START_SECONDS = 240, 60, 120

#: Slices of calls that each contestant has in turn, and how long they are.
SLICES, SLICE_SECONDS = 6, 0.012

#: A process is started anew after so many cases: what compilers leave in it adds up.
CASES_OF_A_PROCESS = 60

#: glibc keeps the memory that it has got: kernels are raced, not the system's page faults.
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


class Failure(Exception):
    """A contestant could not compile or run a case; says why."""


@dataclass(frozen=True)
class Setting:
    """How a case is run: its dtype, and on how many threads."""

    dtype: str = "f32"
    threads: int = 1

    def __str__(self) -> str:
        return f"{self.dtype}/{self.threads}"

    @staticmethod
    def parse(text: str) -> Setting:
        """The setting that is written `f32/1`."""
        dtype, _, threads = text.partition("/")
        return Setting(dtype, int(threads or 1))


@dataclass
class Process:
    """A contestant's process (worker.py); it starts when it is asked first, and again when it has died."""

    name: str
    folder: Path
    threads: int
    _process: subprocess.Popen[bytes] | None = None
    _cases: int = 0

    def compile(self, case: Case, setting: Setting) -> dict[str, Any]:
        """What became of a compilation."""
        if self._cases >= CASES_OF_A_PROCESS:
            self.close()
        self._cases += 1
        try:
            if self._process is None:
                self._start()
            return self._ask(COMPILE_SECONDS, case=case.name, dtype=setting.dtype, threads=setting.threads)
        except Failure as failure:
            return {"failure": str(failure)}

    def slice(self, cpus: Sequence[int]) -> dict[str, Any]:
        """What a slice of calls took."""
        try:
            return self._ask(CALL_SECONDS, seconds=SLICE_SECONDS, cpus=list(cpus))
        except Failure as failure:
            return {"failure": str(failure)}

    def close(self) -> None:
        """Ends it."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                file.close()
        self._process, self._cases = None, 0

    def _start(self) -> None:
        own = self.folder / self.name
        own.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "shapes.worker", self.name, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(own / "log").open("ab"),
            env={
                **os.environ,
                **_MALLOC,
                **CONTESTANTS[self.name].settings(own, own),
                "PIPELINE_CACHE_SIZE": "0",
                "OMP_NUM_THREADS": str(self.threads),
                "PYTHONPATH": os.pathsep.join([str(FOLDER), str(FOLDER.parent)]),
            },
        )
        self._answer(START_SECONDS)

    def _ask(self, patience: float, **request: Any) -> dict[str, Any]:
        assert self._process
        with contextlib.suppress(BrokenPipeError):  # `_answer` says what it died of
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        return self._answer(patience)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            self.close()
            raise Failure(f"took more than {seconds:g} s")
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self.close()
            raise Failure(f"died with {status}")
        return json.loads(line)


@dataclass
class Track:
    """The processes of a sweep, and where they run."""

    names: Sequence[str]
    cpus: tuple[int, ...]
    folder: Path
    processes: dict[str, Process] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.processes = {name: Process(name, self.folder, len(self.cpus)) for name in self.names}

    def race(
        self, case: Case, setting: Setting, names: Sequence[str], slices: int = SLICES
    ) -> Iterator[dict[str, Any]]:
        """The outcome of each contestant, eager's first: it says how large the case is, and what is right."""
        outcomes = {"eager": self.processes["eager"].compile(case, setting)}
        if "failure" not in outcomes["eager"]:
            others = [name for name in names if name != "eager"]
            with ThreadPoolExecutor(len(self.cpus)) as pool:
                made = pool.map(lambda name: self.processes[name].compile(case, setting), others)
                outcomes |= dict(zip(others, made, strict=True))
        self._turns(outcomes, setting, slices)
        for name, outcome in outcomes.items():
            yield {"case": case.name, "setting": str(setting), "contestant": name, **outcome}

    def _turns(self, outcomes: dict[str, dict[str, Any]], setting: Setting, slices: int) -> None:
        """Lets those that compiled it call it in turns; of all slices the least times count."""
        running = [name for name, outcome in outcomes.items() if "failure" not in outcome]
        for _ in range(slices):
            for name in list(running):
                found = self.processes[name].slice(self.cpus[: setting.threads])
                if "failure" in found:
                    running.remove(name)
                    outcomes[name] |= found
                    continue
                for key, seconds in found.items():
                    outcomes[name][key] = min(seconds, outcomes[name].get(key, float("inf")))

    def close(self) -> None:
        """Ends all processes."""
        for process in self.processes.values():
            process.close()


@contextlib.contextmanager
def track(names: Sequence[str], cpus: tuple[int, ...]) -> Iterator[Track]:
    """Processes for a sweep, which end with it."""
    with tempfile.TemporaryDirectory(prefix="shapes-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        found = Track(names, cpus, Path(folder))
        try:
            yield found
        finally:
            found.close()
