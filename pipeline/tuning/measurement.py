"""Kernels that are still to be measured, as what can be sent to another machine of the same kind."""

from __future__ import annotations

import contextlib
import contextvars
import json
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.ir.schedule import Schedule
from pipeline.tuning.bench import Choice
from pipeline.tuning.kernel_program import KernelProgram


@dataclass(frozen=True)
class Measurement:
    """A kernel that has no choice yet.

    Attributes:
        key: under which its choice is kept.
        program: calls it.
        variants: the schedules that may be faster than the default.
        operations: how many arithmetic operations all of its calls in a model have.
    """

    key: str
    program: KernelProgram
    variants: tuple[Schedule, ...]
    operations: int


def kept(choice: Choice) -> bytes:
    """What a cache has of a choice."""
    return json.dumps({"schedule": choice.schedule.choices, "gain": choice.gain}).encode()


def as_kept(data: bytes) -> Choice:
    """The inverse of `kept`."""
    found = json.loads(data)
    return Choice(Schedule(**found["schedule"]), found["gain"])


_missing: contextvars.ContextVar[list[Measurement] | None] = contextvars.ContextVar("pipeline_missing", default=None)


@contextlib.contextmanager
def missing() -> Iterator[list[Measurement]]:
    """Collects what compilations in the `with` block (in this thread) had neither a choice nor the time for."""
    found: list[Measurement] = []
    token = _missing.set(found)
    try:
        yield found
    finally:
        _missing.reset(token)


def miss(measurement: Measurement) -> None:
    """Tells who collects that this is still to be measured."""
    collected = _missing.get()
    if collected is not None:
        collected.append(measurement)
