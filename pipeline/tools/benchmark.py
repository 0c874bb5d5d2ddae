"""Times calls and prints what was measured; nothing here knows what is called."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_COLUMNS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean (ms)": statistics.fmean,
    "median (ms)": statistics.median,
    "max (ms)": max,
    "min (ms)": min,
    "std (ms)": statistics.pstdev,
}


def measure(calls: Sequence[Callable[[], Any]], warmup: int, repeats: int) -> list[list[float]]:
    """The time of each call, in milliseconds, `repeats` times after `warmup` times; several calls take turns.

    In turns, what else the machine does at a time slows down all of them.
    """
    times: list[list[float]] = [[] for _ in calls]
    for number in range(warmup + repeats):
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            if number >= warmup:
                own.append((time.perf_counter() - start) * 1e3)
    return times


def summary(times: Sequence[float]) -> str:
    """The table that TVM's users know: statistics of the time of a call, in milliseconds."""
    return f"Execution time summary of {len(times)} calls:\n{_heads()}\n{_numbers(times)}\n"


def comparison(times: Mapping[str, Sequence[float]]) -> str:
    """That table with a line for each of two names, and how many times the first's median the second's is."""
    first, second = times.values()
    width = max(map(len, times))
    lines = [f"Execution time summary of {len(first)} calls each, in turn:", f"{'':{width}}{_heads()}"]
    lines += [f"{name:{width}}{_numbers(own)}" for name, own in times.items()]
    ratio = statistics.median(second) / statistics.median(first)
    return "\n".join([*lines, f"ratio of the medians, second to first: {ratio:.3f}", ""])


def _heads() -> str:
    return "".join(f"{name:^14}" for name in _COLUMNS).rstrip()


def _numbers(times: Sequence[float]) -> str:
    return "".join(f"{of(times):^14.4f}" for of in _COLUMNS.values()).rstrip()
