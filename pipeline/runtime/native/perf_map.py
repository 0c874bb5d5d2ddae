"""Names of kernels for Linux' `perf`, where `PIPELINE_PERF_MAP` is set: lines in /tmp/perf-PID.map.

Both are what `perf` expects of code that is made at run time; it looks nowhere else.
"""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.runtime.native.elf import functions


def wanted() -> bool:
    """Whether the user asked for the map."""
    return os.environ.get("PIPELINE_PERF_MAP", "") not in ("", "0")


def path() -> Path:
    """Where `perf` looks for the map of this process."""
    return Path(f"/tmp/perf-{os.getpid()}.map")


def append(code: bytes, start: int) -> None:
    """Writes where the functions of a shared object lie that was loaded at `start`."""
    with path().open("a") as file:
        file.writelines(f"{start + place:x} {size:x} {name}\n" for name, place, size in functions(code))
