"""Where the time of a compilation goes: stages and passes, timed inside each other.

The compiler wraps its steps in `stage`; whoever wants to know collects with `with collect() as times:`. Outside of a
collection nothing is timed.
"""

from __future__ import annotations

import contextlib
import contextvars
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


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


_current: contextvars.ContextVar[TimedStage | None] = contextvars.ContextVar("pipeline_timing", default=None)


@contextlib.contextmanager
def collect(name: str = "Total") -> Iterator[TimedStage]:
    """Times the `with` block (in this thread) with every stage in it; the times are there when the block ends."""
    total = TimedStage(name)
    with _timed(total):
        yield total


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Times the `with` block as a step of the stage around it; a step that comes again adds to the first."""
    outer = _current.get()
    if outer is None:
        yield
        return
    step = next((known for known in outer.steps if known.name == name), None)
    if step is None:
        step = TimedStage(name)
        outer.steps.append(step)
    with _timed(step):
        yield


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
