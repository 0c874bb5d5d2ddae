"""A crew: a worker on each machine of a cluster, jobs for machines of one kind, and each job's result once.

A worker is an actor that does one job after the other. When it or its machine is lost, its job goes to another worker
of the kind; machines that join the cluster get workers, too. What a job returns is taken once, from the worker that has
it at the time.
"""

from __future__ import annotations

import collections
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from pipeline import logs
from pipeline.errors import PipelineError
from pipeline.ray.cores import claim
from pipeline.tuning.cpu_kind import CpuKind, cpu_kind

_told = logs.log("ray")

#: After so many seconds it is looked again which machines there are.
_LOOK = 2.0

#: So many seconds a job may take after the time is over, until its worker is ended.
_GRACE = 60.0

#: By the kind of CPU.
_Queues = collections.defaultdict[CpuKind, collections.deque[Any]]


@dataclass(frozen=True, eq=False)
class CrewJob:
    """Something to be done once.

    Attributes:
        name: what it is called, for people.
        kind: the CPU that the machine has to have.
        function: what is called there, with `arguments` and `seconds`, the time that is left.
        arguments: those that are references to objects of ray's stand for these.
    """

    name: str
    kind: CpuKind
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Done:
    """What became of a job.

    Attributes:
        value: what the function returned.
        error: in place of it: what it raised, or that its workers were lost.
        seconds: how long it took.
        attempts: how often it was begun.
    """

    job: CrewJob
    value: Any = None
    error: str | None = None
    seconds: float = 0.0
    attempts: int = 1


@dataclass(frozen=True, eq=False)
class _Worker:
    node: str
    kind: CpuKind
    actor: Any


@dataclass(eq=False)
class Crew:
    """The workers of the cluster that this process has joined; a context, at whose end they are gone.

    Attributes:
        environment: variables of the workers' processes.
        cores: how many each has at most; larger machines have more than one worker then. None for all of its machine's,
            so that nothing of ray's runs beside it.
        retries: how often a job whose worker was lost is begun again.
        patience: for how many seconds jobs wait for a machine when none of their kind is left.
    """

    environment: Mapping[str, str]
    cores: int | None = None
    retries: int = 3
    patience: float = 60.0
    _workers: list[_Worker] = field(init=False, default_factory=list)
    _joining: dict[Any, _Worker] = field(init=False, default_factory=dict)
    _idle: _Queues = field(init=False, default_factory=lambda: collections.defaultdict(collections.deque))
    _waiting: _Queues = field(init=False, default_factory=lambda: collections.defaultdict(collections.deque))
    _running: dict[Any, tuple[CrewJob, _Worker, float]] = field(init=False, default_factory=dict)
    _attempts: collections.Counter[CrewJob] = field(init=False, default_factory=collections.Counter)
    _nodes: dict[str, CpuKind] = field(init=False, default_factory=dict)
    _alive: set[str] = field(init=False, default_factory=set)
    _seen: dict[CpuKind, float] = field(init=False, default_factory=dict)
    _looked: float = field(init=False, default=-_LOOK)

    def __enter__(self) -> Crew:
        if not ray.is_initialized():
            ray.init()
        self._look()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            ray.kill(worker.actor)

    @property
    def kinds(self) -> list[CpuKind]:
        """The kinds of CPU of the machines that there have been so far; raises `PipelineError` where there are none."""
        if not self._nodes:
            raise PipelineError("no machine of the cluster has a core for ray's work: start it with num_cpus")
        return sorted(self.machines)

    @property
    def machines(self) -> collections.Counter[CpuKind]:
        """How many machines of each kind there have been so far."""
        return collections.Counter(self._nodes.values())

    def submit(self, jobs: Sequence[CrewJob], *, first: bool = False) -> None:
        """Has jobs done after those that wait; `first` before them."""
        for job in jobs:
            queue = self._waiting[job.kind]
            (queue.appendleft if first else queue.append)(job)

    def results(self, seconds: float = float("inf")) -> Iterator[Done]:
        """What becomes of the jobs, as they are done; ends when all are, or after so many seconds.

        Jobs that run then have a minute to notice; those that were not begun stay undone.
        """
        deadline = time.monotonic() + seconds
        while self._running or (any(self._waiting.values()) and time.monotonic() < deadline):
            if time.monotonic() > deadline + _GRACE:
                return
            self._look()
            yield from self._given_up()
            self._hand_out(deadline)
            for reference in _ready([*self._joining, *self._running]):
                if reference in self._joining:
                    self._join(reference)
                else:
                    yield from self._done(reference)

    def _hand_out(self, deadline: float) -> None:
        for kind, jobs in self._waiting.items():
            idle = self._idle[kind]
            while jobs and idle and time.monotonic() < deadline:
                job, worker = jobs.popleft(), idle.popleft()
                self._attempts[job] += 1
                reference = worker.actor.do.remote(job.function, deadline - time.monotonic(), *job.arguments)
                self._running[reference] = (job, worker, time.monotonic())
                _told.info("%s: begun on %s", job.name, worker.node[:8])

    def _done(self, reference: Any) -> Iterator[Done]:
        job, worker, begun = self._running.pop(reference)
        seconds, attempts = time.monotonic() - begun, self._attempts[job]
        try:
            value = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            self._idle[worker.kind].append(worker)
            yield Done(job, error=_in_words(error), seconds=seconds, attempts=attempts)
        except ray.exceptions.RayError as error:
            self._lose(worker, error)
            if attempts <= self.retries:
                self.submit([job], first=True)
            else:
                lost = f"it was begun {attempts} times, and each time its worker was lost: {_first_line(error)}"
                yield Done(job, error=lost, seconds=seconds, attempts=attempts)
        else:
            self._idle[worker.kind].append(worker)
            yield Done(job, value, seconds=seconds, attempts=attempts)

    def _given_up(self) -> Iterator[Done]:
        """Jobs for which there has been no machine for too long."""
        now = time.monotonic()
        self._seen |= dict.fromkeys({self._nodes[node] for node in self._alive & self._nodes.keys()}, now)
        for kind, jobs in self._waiting.items():
            if now > self._seen.setdefault(kind, now) + self.patience:
                while jobs:
                    job = jobs.popleft()
                    yield Done(job, error=f"there is no machine left that has {kind}", attempts=self._attempts[job])

    def _join(self, reference: Any) -> None:
        """A worker has started, or will not."""
        worker = self._joining.pop(reference)
        try:
            ray.get(reference)
        except ray.exceptions.RayError as error:
            self._lose(worker, error)
        else:
            self._idle[worker.kind].append(worker)

    def _lose(self, worker: _Worker, error: Exception) -> None:
        """Goes on without a worker; it is ended for sure, so that nobody does its job beside the next one."""
        _told.warning("a worker on %s is lost: %s", worker.node[:8], _first_line(error))
        self._workers.remove(worker)
        ray.kill(worker.actor)

    def _look(self) -> None:
        """Gives workers to machines that have too few: those that are new, or lost some."""
        if time.monotonic() < self._looked + _LOOK:
            return
        self._looked = time.monotonic()
        cores = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}
        self._drop([worker for queue in self._idle.values() for worker in queue if worker.node not in cores])
        cores = {node: count for node, count in cores.items() if count}
        self._alive = set(cores)
        self._nodes |= _kinds([node for node in cores if node not in self._nodes])
        have = collections.Counter(worker.node for worker in self._workers)
        for node, count in cores.items():
            each = min(self.cores or count, count)
            if node in self._nodes:
                for _ in range(count // each - have[node]):
                    self._recruit(node, each)

    def _drop(self, workers: Sequence[_Worker]) -> None:
        """Goes on without workers that had nothing to do."""
        for worker in workers:
            self._workers.remove(worker)
            self._idle[worker.kind].remove(worker)

    def _recruit(self, node: str, cores: int) -> None:
        here = NodeAffinitySchedulingStrategy(node, soft=False)
        environment = {"env_vars": dict(self.environment)} if self.environment else None
        hands = ray.remote(_Hands).options(num_cpus=cores, scheduling_strategy=here, runtime_env=environment)
        actor = hands.remote(cores)
        worker = _Worker(node, self._nodes[node], actor)
        self._workers.append(worker)
        self._joining[actor.is_there.remote()] = worker


class _Hands:
    """What a worker is on its machine."""

    def __init__(self, cores: int):
        mine = claim(cores)
        if mine:
            os.sched_setaffinity(0, mine)

    def is_there(self) -> None:
        """Returns when it has started."""

    def do(self, function: Callable[..., Any], seconds: float, *arguments: Any) -> Any:
        """Does a job."""
        return function(*arguments, seconds=seconds)


def _ready(references: list[Any]) -> list[Any]:
    """Those that are ready by now; waits for one, but not for long."""
    if not references:
        time.sleep(0.1)
        return []
    first, _ = ray.wait(references, num_returns=1, timeout=0.5)
    return list(ray.wait(references, num_returns=len(references), timeout=0)[0]) if first else []


@ray.remote(num_cpus=0, max_retries=0)
def _kind() -> CpuKind:
    return cpu_kind()


def _kinds(nodes: Sequence[str]) -> dict[str, CpuKind]:
    """The kinds of machines; of one that is lost meanwhile there is none."""
    asked = {
        node: _kind.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        for node in nodes
    }
    found = {}
    for node, reference in asked.items():
        try:
            found[node] = ray.get(reference)
        except ray.exceptions.RayTaskError:
            raise
        except ray.exceptions.RayError as error:
            _told.warning("%s is lost: %s", node[:8], _first_line(error))
    return found


def _in_words(error: ray.exceptions.RayTaskError) -> str:
    cause = error.cause
    return f"{type(cause).__name__}: {cause}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
