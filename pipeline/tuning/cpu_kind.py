"""What kind of CPU this machine has: what is measured on one machine holds on all machines of its kind."""

from __future__ import annotations

import contextlib
import functools
import platform
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.llvm import host_cpu


@dataclass(frozen=True, order=True)
class CpuKind:
    """A kind of CPU.

    Attributes:
        model: what the system calls it: LLVM's name says too little.
        cpu, features: what LLVM calls it, and what it has.
    """

    model: str
    cpu: str
    features: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.model} ({self.cpu})"


@functools.cache
def cpu_kind() -> CpuKind:
    """That of this machine."""
    return CpuKind(_model(), *host_cpu())


def _model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
