"""Targets: the processors that code is generated for."""

from __future__ import annotations

from pipeline.errors import OptionError
from pipeline.targets.target import Target

TARGETS = ("cpu",)


def create(
    name: str, cpu: str, disable: frozenset[str] = frozenset(), assembly: bool = False, linked: bool = False
) -> Target:
    """The target called `name`, for the CPU `cpu` where it is one; raises `OptionError` for a name that isn't known.

    Passes of its own that are in `disable` are left out. With `assembly` it dumps the stage `asm`; with
    `linked` the code is one object file that a linker can take.
    """
    if name not in TARGETS:
        raise OptionError(f"target={name!r}: expected {' or '.join(TARGETS)}")
    from pipeline.targets.cpu.target import CpuTarget

    return CpuTarget(cpu, disable, assembly, linked)
