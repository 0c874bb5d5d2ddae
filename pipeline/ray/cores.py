"""Cores of this machine that a process claims for itself, so that actors beside each other do not share any.

A claim is a lock on a file per core, which the system takes away when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

_TOPOLOGY = Path("/sys/devices/system/cpu")

#: What holds this process's claims.
_held: list[IO[str]] = []


def claim(count: int) -> tuple[int, ...]:
    """Claims so many cores until this process ends; none where they are not all free, or are not this process's alone.

    They are next to each other: threads of a core before other cores, those before other sockets. A process that has a
    share of the time of all cores (a container's quota) cannot know which of them others use: it claims none.
    """
    cores = sorted(os.sched_getaffinity(0), key=_place)
    if count >= len(cores) or _quota() < len(cores):
        return ()
    folder = Path(tempfile.gettempdir()) / f"pipeline-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "all").open("w") as everything:
        fcntl.flock(everything, fcntl.LOCK_EX)
        taken: dict[int, IO[str]] = {}
        for core in cores:
            file = (folder / str(core)).open("w")
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                taken[core] = file
                if len(taken) == count:
                    _held.extend(taken.values())
                    return tuple(taken)
    return ()


def _place(core: int) -> tuple[int, ...]:
    return (*(_number(_TOPOLOGY / f"cpu{core}/topology/{name}") for name in ("physical_package_id", "core_id")), core)


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def _quota() -> float:
    """How many cores' time this process may take."""
    with contextlib.suppress(OSError, ValueError):
        most, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return float("inf") if most == "max" else int(most) / int(period)
    microseconds = _number(Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))
    return microseconds / _number(Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")) if microseconds > 0 else float("inf")
