"""Where the time of a compilation goes: stages and passes, timed inside each other.

The compiler wraps its steps in `stage`; whoever wants to know collects with `with collect() as times:`, or is told of
each as it begins and ends by `watched`. Otherwise nothing is timed.
"""

from __future__ import annotations

import contextlib
import contextvars
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol


@dataclass
class TimedStage:
    """A step of a compilation: how long it took, what of it its own steps took, all in seconds.

    Attributes:
        wall: by the clock.
        cpu: of this process and of the ones that it started and waited for.
    """

    name: str
    wall: float = 0.0
    cpu: float = 0.0
    steps: list[TimedStage] = field(default_factory=list)

    @property
    def rest(self) -> float:
        """The wall time that none of the steps took."""
        return max(0.0, self.wall - sum(step.wall for step in self.steps))

    def find(self, name: str) -> TimedStage | None:
        """The first step of that name, at any depth."""
        for step in self.steps:
            found = step if step.name == name else step.find(name)
            if found is not None:
                return found
        return None


class Watcher(Protocol):
    """Is told of stages and passes; `depth` is the number of stages around one."""

    def begin(self, name: str, depth: int) -> None:
        """A stage or pass has begun."""

    def end(self, name: str, depth: int, seconds: float, is_pass: bool) -> None:
        """It has ended, after so many seconds by the clock."""


_current: contextvars.ContextVar[TimedStage | None] = contextvars.ContextVar("pipeline_timing", default=None)


#: Who is told, and the number of stages around.
_watcher: contextvars.ContextVar[tuple[Watcher, int] | None] = contextvars.ContextVar("pipeline_watcher", default=None)


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tells `watcher` of each stage in the `with` block (in this thread)."""
    token = _watcher.set((watcher, 0))
    try:
        yield
    finally:
        _watcher.reset(token)


@contextlib.contextmanager
def collect(name: str = "Total") -> Iterator[TimedStage]:
    """Times the `with` block (in this thread) with every stage in it; the times are there when the block ends."""
    total = TimedStage(name)
    with _timed(total):
        yield total


@contextlib.contextmanager
def stage(name: str, is_pass: bool = False) -> Iterator[None]:
    """Times the `with` block as a step of the stage around it; a step that comes again adds to the first."""
    with _told(name, is_pass):
        outer = _current.get()
        if outer is None:
            yield
            return
        with _timed(_step(outer, name)):
            yield


def _step(outer: TimedStage, name: str) -> TimedStage:
    step = next((known for known in outer.steps if known.name == name), None)
    if step is None:
        step = TimedStage(name)
        outer.steps.append(step)
    return step


@contextlib.contextmanager
def _told(name: str, is_pass: bool) -> Iterator[None]:
    """Tells who watches."""
    told = _watcher.get()
    if told is None:
        yield
        return
    watcher, depth = told
    token = _watcher.set((watcher, depth + 1))
    begun = time.perf_counter()
    watcher.begin(name, depth)
    try:
        yield
    finally:
        watcher.end(name, depth, time.perf_counter() - begun, is_pass)
        _watcher.reset(token)


@contextlib.contextmanager
def _timed(step: TimedStage) -> Iterator[None]:
    token = _current.set(step)
    wall, cpu = time.perf_counter(), _cpu_seconds()
    try:
        yield
    finally:
        step.wall += time.perf_counter() - wall
        step.cpu += _cpu_seconds() - cpu
        _current.reset(token)


def _cpu_seconds() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
