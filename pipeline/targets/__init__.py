"""Targets: the processors that code is generated for."""

from __future__ import annotations

from pipeline.errors import OptionError
from pipeline.targets.target import PLAIN, Form, Target

TARGETS = ("cpu",)


def create(name: str, cpu: str, disable: frozenset[str] = frozenset(), form: Form = PLAIN) -> Target:
    """The target called `name`, for the CPU `cpu` where it is one; raises `OptionError` for a name that isn't known.

    Passes of its own that are in `disable` are left out.
    """
    if name not in TARGETS:
        raise OptionError(f"target={name!r}: expected {' or '.join(TARGETS)}")
    from pipeline.targets.cpu.target import CpuTarget

    return CpuTarget(cpu, disable, form)
