"""Where the time of a call goes: measured by code that times its kernels, put into a table and a trace."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import PipelineError
from pipeline.runtime.interface.atomic_files import replacing
from pipeline.runtime.interface.code import Code, Site, place_of
from pipeline.runtime.report.event_record import Record
from pipeline.runtime.report.machine_peak import Peak, measured_peak

if TYPE_CHECKING:
    from pipeline.runtime.executable import Executable

_WARMUP = 2


@dataclass(frozen=True)
class Row:
    """What a kernel, or `copy`, costs in one call of the model, at one line of the model's source in one module.

    Attributes:
        source: the PyTorch source line, `file.py:12`; empty where unknown.
        module: the path of the module of the model, e.g. `encoder.layer.3`; empty where unknown.
        runs: how often it runs.
        seconds: how long all runs together take.
        operations: arithmetic operations of all runs; None where they depend on the call.
        bytes: what all runs read and write at least; None where that depends on the call.
    """

    name: str
    source: str
    runs: float
    seconds: float
    operations: int | None
    bytes: int | None
    module: str = ""


@dataclass(frozen=True)
class Profile:
    """The mean of several calls.

    Attributes:
        seconds: how long a call takes, as the caller sees it.
        code_seconds: how long the compiled code takes of that; the rest is reading arguments and making results.
        rows: what the compiled code spends it on, most first.
        peak: what this machine can do.
        calls: how many calls were measured.
        sites: what each place in the code costs, in the order of the code; empty where torch runs some of the model.
        events: the runs of the last call in the order of time: the number of the site, where -1 is the code as a whole,
            and when the run began and ended in nanoseconds.
    """

    seconds: float
    code_seconds: float
    rows: tuple[Row, ...]
    peak: Peak
    calls: int
    sites: tuple[Row, ...] = field(repr=False, default=())
    events: tuple[tuple[int, int, int], ...] = field(repr=False, default=())

    @property
    def accounted(self) -> float:
        """The part of a call's time that kernels and copies take."""
        return sum(row.seconds for row in self.rows) / self.seconds

    def __str__(self) -> str:
        return "\n".join([_title(self), "", *_table(self), ""])

    def save_trace(self, path: str | Path) -> None:
        """Writes the last call as a trace that chrome://tracing, Perfetto and speedscope show.

        Raises:
            PipelineError: the file cannot be written.
        """
        first = min((start for _, start, _ in self.events), default=0)
        events = [
            {
                "name": "main" if site < 0 else self.sites[site].name,
                "ph": "X",
                "ts": (start - first) / 1e3,
                "dur": (end - start) / 1e3,
                "pid": 1,
                "tid": 1,
                "args": self._args(site),
            }
            for site, start, end in self.events
        ]
        try:
            with replacing(Path(path)) as temporary:
                temporary.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))
        except OSError as error:
            raise PipelineError(f"{path}: cannot be written: {error.strerror}") from None

    def _args(self, site: int) -> dict[str, str]:
        """What a trace says of an event beside its name."""
        if site < 0:
            return {"source": "", "module": ""}
        return {"source": self.sites[site].source, "module": self.sites[site].module}


def measure(
    executable: Executable, code: Code, record: Record, args: tuple[Any, ...], kwargs: Mapping[str, Any], repeats: int
) -> Profile:
    """Calls an executable that times its kernels, `repeats` times after two calls that do not count."""
    if repeats < 1:
        raise PipelineError(f"repeats: expected 1 or more, got {repeats}")
    for _ in range(_WARMUP):
        executable(*args, **kwargs)
    record.clear()
    seconds = 0.0
    nanoseconds, runs = [0] * len(code.sites), [0] * len(code.sites)
    for _ in range(repeats):
        record.clear()
        start = time.perf_counter()
        executable(*args, **kwargs)
        seconds += time.perf_counter() - start
        nanoseconds = [old + new for old, new in zip(nanoseconds, record.nanoseconds(), strict=True)]
        runs = [old + new for old, new in zip(runs, record.runs(), strict=True)]
    events = [(site - 1, start, end) for site, start, end in record.events()]
    return Profile(
        seconds=seconds / repeats,
        code_seconds=nanoseconds[0] / 1e9 / repeats,
        rows=tuple(sorted(measured_rows(code, nanoseconds, runs, repeats), key=lambda row: -row.seconds)),
        peak=measured_peak(),
        calls=repeats,
        sites=tuple(_row(code, [number], nanoseconds, runs, repeats) for number in range(1, len(code.sites))),
        events=tuple(sorted(events, key=lambda event: event[1])),
    )


def measured_rows(code: Code, nanoseconds: list[int], runs: list[int], repeats: int) -> Iterator[Row]:
    """The rows of code whose sites ran so often and took so long in `repeats` calls of the model."""
    places: dict[Site, list[int]] = {}
    for number, site in enumerate(code.sites[1:], 1):
        places.setdefault(site, []).append(number)
    for numbers in places.values():
        yield _row(code, numbers, nanoseconds, runs, repeats)


def _row(code: Code, sites: Sequence[int], nanoseconds: list[int], runs: list[int], repeats: int) -> Row:
    """What sites of one kernel and one place of the model cost together."""
    site = code.sites[sites[0]]
    kernel = next((kernel for kernel in code.kernels if kernel.name == site.name), None)
    times = sum(runs[number] for number in sites) / repeats
    operations = None if kernel is None or kernel.operations is None else round(kernel.operations * times)
    moved = None if kernel is None or kernel.bytes is None else round(kernel.bytes * times)
    taken = sum(nanoseconds[number] for number in sites) / 1e9 / repeats
    return Row(site.name, site.source, times, taken, operations, moved, site.module)


def _title(profile: Profile) -> str:
    return (
        f"{profile.seconds * 1e3:.3f} ms a call, mean of {profile.calls}; "
        f"{profile.accounted:.1%} of it in kernels and copies\n"
        f"this machine: {_arithmetic(profile.peak)}, {profile.peak.bytes / 1e9:.1f} GB/s, one thread"
    )


def _arithmetic(peak: Peak) -> str:
    if peak.operations is None:
        return "? GFLOP/s (only an installation that compiles measures it)"
    return f"{peak.operations / 1e9:.0f} GFLOP/s"


def _table(profile: Profile) -> list[str]:
    lines = [["ms", "% of call", "runs", "GFLOP/s", "GB/s", "% of peak", "kernel", "source"]]
    lines += [_line(row, profile) for row in profile.rows]
    inside = profile.code_seconds - sum(row.seconds for row in profile.rows)
    for name, seconds in (
        ("between kernels", inside),
        ("arguments and results", profile.seconds - profile.code_seconds),
    ):
        share = f"{seconds / profile.seconds:.1%}"
        lines.append([f"{seconds * 1e3:.4f}", share, "", "", "", "", f"({name})", ""])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return ["  ".join(_aligned(line, widths)).rstrip() for line in lines]


def _line(row: Row, profile: Profile) -> list[str]:
    return [
        f"{row.seconds * 1e3:.4f}",
        f"{row.seconds / profile.seconds:.1%}",
        f"{row.runs:g}",
        _rate(row.operations, row.seconds),
        _rate(row.bytes, row.seconds),
        _share(row, profile.peak),
        row.name,
        place_of(_near(row.source), row.module),
    ]


def _near(source: str) -> str:
    """A source line as seen from the current folder, where it lies inside of that; of a package, from its folder."""
    here = f"{os.getcwd()}{os.sep}"
    return source.rpartition(f"{os.sep}site-packages{os.sep}")[2].removeprefix(here)


def _aligned(line: list[str], widths: list[int]) -> Iterator[str]:
    for column, (cell, width) in enumerate(zip(line, widths, strict=True)):
        yield cell.rjust(width) if column < 6 else cell.ljust(width)


def _rate(amount: int | None, seconds: float) -> str:
    return "-" if amount is None or not seconds else f"{amount / seconds / 1e9:.1f}"


def _share(row: Row, peak: Peak) -> str:
    if row.operations is None or row.bytes is None:
        return "-"
    share = peak.share(row.seconds, row.operations, row.bytes)
    return "-" if share is None else f"{share:.0%}"
