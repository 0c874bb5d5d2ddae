"""Where the time of a call in steps goes: kernels as they time themselves, torch's ops as seen from here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.errors import PipelineError
from pipeline.frontend.fallback.steps import FallbackStep, NodeStep, PartStep
from pipeline.frontend.fx_passes.source_lines import module_path, source_line
from pipeline.frontend.importer.fx_importer import target_name
from pipeline.runtime.executable import Executable
from pipeline.runtime.report.machine_peak import measured_peak
from pipeline.runtime.report.profiler import Profile, Row, measured_rows


class StepTimes:
    """Is told by each step that torch runs how long it took."""

    def __init__(self) -> None:
        self.seconds: dict[FallbackStep, float] = {}

    def add(self, step: FallbackStep, seconds: float) -> None:
        """Counts one run of a step."""
        self.seconds[step] = self.seconds.get(step, 0.0) + seconds


def profile_steps(
    executable: Any, steps: Sequence[FallbackStep], args: tuple[Any, ...], kwargs: Mapping[str, Any], repeats: int
) -> Profile:
    """Calls an executable whose parts time their kernels, `repeats` times after two calls that do not count."""
    if repeats < 1:
        raise PipelineError(f"repeats: expected 1 or more, got {repeats}")
    for _ in range(2):
        executable(*args, **kwargs)
    parts = [step.executable for step in steps if isinstance(step, PartStep)]
    counts = [_Counts(part) for part in parts]
    times = StepTimes()
    seconds = 0.0
    for _ in range(repeats):
        for count in counts:
            count.clear()
        start = time.perf_counter()
        executable.call_timed(times, args, kwargs)
        seconds += time.perf_counter() - start
        for count in counts:
            count.add()
    rows = [row for count in counts for row in count.rows(repeats)] + list(_rows_of_torch(times, repeats))
    inside = sum(count.nanoseconds[0] for count in counts if count.nanoseconds) / 1e9 + sum(times.seconds.values())
    return Profile(
        seconds=seconds / repeats,
        code_seconds=inside / repeats,
        rows=tuple(sorted(rows, key=lambda row: -row.seconds)),
        peak=measured_peak(),
        calls=repeats,
    )


class _Counts:
    """What the kernels of one part took so far."""

    def __init__(self, part: Executable):
        self._code, self._record = part.code, part.record
        self.nanoseconds = [0] * len(self._code.sites)
        self._runs = [0] * len(self._code.sites)

    def clear(self) -> None:
        """Before a call."""
        if self._record is not None:
            self._record.clear()

    def add(self) -> None:
        """After a call."""
        if self._record is not None:
            self.nanoseconds = [a + b for a, b in zip(self.nanoseconds, self._record.nanoseconds(), strict=True)]
            self._runs = [a + b for a, b in zip(self._runs, self._record.runs(), strict=True)]

    def rows(self, repeats: int) -> Iterator[Row]:
        """The rows of the table."""
        return measured_rows(self._code, self.nanoseconds, self._runs, repeats)


def _rows_of_torch(times: StepTimes, repeats: int) -> Iterator[Row]:
    for step, seconds in times.seconds.items():
        if isinstance(step, NodeStep):
            line = source_line(step.node)
            source, module = f"{line[0]}:{line[1]}" if line else "", module_path(step.node) or ""
            yield Row(target_name(step.node), source, 1, seconds / repeats, None, None, module)
