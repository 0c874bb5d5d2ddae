"""What the compiler hands to the runtime: machine code and how to call it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from pipeline.runtime.entry_point import EntryPoint
from pipeline.runtime.signature import Source, TensorType


@dataclass(frozen=True)
class Kernel:
    """A kernel of an executable.

    Attributes:
        name: its name, which is the symbol that profilers show.
        kind: what it is, e.g. `elementwise`, `matmul`.
        ops: the linalg ops that it computes, in order.
        calls: in how many places the program calls it.
        operations: how many arithmetic operations a call takes; None if that depends on the call.
        bytes: how many bytes it reads and writes at least, everything once; None if that depends on the call.
    """

    name: str
    kind: str
    ops: tuple[str, ...]
    calls: int
    operations: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Site:
    """A place in the code that is timed: what runs there, a kernel or `copy`, and the PyTorch source line or ``."""

    name: str
    source: str


@dataclass(frozen=True)
class Code:
    """Everything of an executable but its signature and weights.

    Attributes:
        objects: machine code, as object files that call each other.
        main, main_sources: the entry for each call, and where each of its own arguments comes from.
        prepare, prepare_sources, prepared: likewise for what is computed from weights alone, and its results' types.
        workspace: how many bytes main's temporaries take.
        checks: the messages of the checks that the code makes as it runs, by number from 1.
        machine: the kind of machine that it is for, as Python's `platform.machine` has it.
        cpu, required: the CPU that it is for, and the features that one must have to run it.
        kernels: in the order of first use.
        sites: what is timed, by number, in code that times its kernels; the first is main as a whole.
    """

    objects: tuple[bytes, ...]
    main: EntryPoint
    main_sources: tuple[Source, ...]
    prepare: EntryPoint | None
    prepare_sources: tuple[Source, ...]
    prepared: tuple[TensorType, ...]
    workspace: int
    checks: tuple[str, ...]
    machine: str
    cpu: str
    required: tuple[str, ...]
    kernels: tuple[Kernel, ...] = ()
    sites: tuple[Site, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Everything but the object files, as JSON values."""
        return asdict(replace(self, objects=())) | {"objects": len(self.objects)}

    @staticmethod
    def from_json(data: dict[str, Any], objects: tuple[bytes, ...]) -> Code:
        """The inverse of `to_json`."""
        return Code(
            objects=objects,
            main=EntryPoint.from_json(data["main"]),
            main_sources=tuple(Source(**source) for source in data["main_sources"]),
            prepare=None if data["prepare"] is None else EntryPoint.from_json(data["prepare"]),
            prepare_sources=tuple(Source(**source) for source in data["prepare_sources"]),
            prepared=tuple(TensorType(kind["dtype"], tuple(kind["shape"])) for kind in data["prepared"]),
            workspace=data["workspace"],
            checks=tuple(data["checks"]),
            machine=data["machine"],
            cpu=data["cpu"],
            required=tuple(data["required"]),
            kernels=tuple(Kernel(**{**kernel, "ops": tuple(kernel["ops"])}) for kernel in data["kernels"]),
            sites=tuple(Site(**site) for site in data["sites"]),
        )
