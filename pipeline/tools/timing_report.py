"""Tables of times and counts, as mlir-opt prints them: `--mlir-timing`, `--mlir-pass-statistics`, `--timing`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.mlir import ir
from pipeline.passmanager.pass_runner import Instrumentation, PipelineStep
from pipeline.timing import TimedStage

_RULE = "===" + "-" * 73 + "==="


def _header(title: str) -> list[str]:
    return [_RULE, f"... {title} ...".center(len(_RULE)).rstrip(), _RULE]


@dataclass
class Timing(Instrumentation):
    """Adds up wall time by phase (`Parser`, `Output`) and by step of the pipeline, in order of first appearance."""

    _seconds: dict[object, float] = field(default_factory=dict)
    _names: dict[object, str] = field(default_factory=dict)
    _started: float = 0.0
    _begin: float = field(default_factory=time.perf_counter)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Times the `with` block as the phase `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._add(name, name, start)

    def before(self, step: PipelineStep, op: ir.Operation) -> None:
        """Starts the clock."""
        self._started = time.perf_counter()

    def after(self, step: PipelineStep, op: ir.Operation) -> None:
        """Stops the clock."""
        self._add(id(step), step.pass_.name, self._started)

    failed = after

    def _add(self, key: object, name: str, start: float) -> None:
        self._names[key] = name
        self._seconds[key] = self._seconds.get(key, 0.0) + time.perf_counter() - start

    def report(self) -> str:
        """The table, in the form of mlir-opt's."""
        total = time.perf_counter() - self._begin
        rows = [(self._names[key], seconds) for key, seconds in self._seconds.items()]
        rows += [("Rest", max(0.0, total - sum(self._seconds.values()))), ("Total", total)]
        lines = [*_header("Execution time report"), f"  Total Execution Time: {total:.4f} seconds", ""]
        lines.append("  ----Wall Time----  ----Name----")
        lines += [f"  {seconds:8.4f} ({100 * seconds / total:5.1f}%)  {name}" for name, seconds in rows]
        return "\n".join(lines) + "\n"


@dataclass
class Statistics(Instrumentation):
    """Counts, for each step of the pipeline, the ops that it ran on, changed, added and removed.

    MLIR's own counters are not in the wheel: it is built without them.
    """

    _counts: dict[int, dict[str, int]] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)
    _ops: int = 0
    _text: str = ""

    def before(self, step: PipelineStep, op: ir.Operation) -> None:
        """Remembers what the pass is given."""
        self._ops, self._text = _count(op), op.get_asm()

    def after(self, step: PipelineStep, op: ir.Operation) -> None:
        """Counts what has become of it."""
        self._names[id(step)] = step.pass_.name
        counts = self._counts.setdefault(id(step), dict.fromkeys(("runs", "changed", "ops-added", "ops-removed"), 0))
        grown = _count(op) - self._ops
        counts["runs"] += 1
        counts["changed"] += op.get_asm() != self._text
        counts["ops-added"] += max(grown, 0)
        counts["ops-removed"] += max(-grown, 0)

    def report(self) -> str:
        """The table, in the form of mlir-opt's."""
        lines = _header("Pass statistics report")
        for key, counts in self._counts.items():
            lines.append(self._names[key])
            lines += [f"  (S) {count:6} {name}" for name, count in counts.items()]
        return "\n".join(lines) + "\n"


def _count(op: ir.Operation) -> int:
    count = 0

    def visit(_: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return count


#: What takes less is left to the `Rest` of the stage that it is in, in seconds.
SMALLEST = 0.0005


def stage_report(total: TimedStage) -> str:
    """Wall and CPU time of every stage, what it consists of below it, what is in none of that as `Rest`."""
    return "\n".join(
        [
            *_header("Execution time report"),
            f"  Total Execution Time: {total.wall:.4f} seconds",
            "",
            "  ----Wall Time----  ----CPU Time----  ----Name----",
            *_rows(total, total, 0),
            _row("Total", total.wall, total.cpu, total),
            "",
        ]
    )


def _rows(stage: TimedStage, total: TimedStage, depth: int) -> Iterator[str]:
    for step in stage.steps:
        if step.wall >= SMALLEST:
            yield _row("  " * depth + step.name, step.wall, step.cpu, total)
            yield from _rows(step, total, depth + 1)
    shown = [step for step in stage.steps if step.wall >= SMALLEST]
    if stage.steps:
        wall, cpu = stage.wall - sum(step.wall for step in shown), stage.cpu - sum(step.cpu for step in shown)
        yield _row("  " * depth + "Rest", max(0.0, wall), max(0.0, cpu), total)


def _row(name: str, wall: float, cpu: float, total: TimedStage) -> str:
    return f"{_part(wall, total.wall)} {_part(cpu, total.cpu)}  {name}"


def _part(seconds: float, total: float) -> str:
    return f"  {seconds:8.4f} ({100 * seconds / total if total else 0:5.1f}%)"
