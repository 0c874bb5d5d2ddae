"""The code of a kernel, and what callers have to know of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pipeline.mlir import ir
from pipeline.passes.cpu.parallelize_kernels import CHUNK_OF
from pipeline.remarks import Remark, place
from pipeline.targets.cpu.shared_kernels.kernel_text import ShareableKernel


@dataclass(frozen=True)
class KernelCode:
    """See the module's docstring.

    Attributes:
        taken: the numbers of the arguments, in LLVM dialect, that it takes; None for all.
        scratch: how many bytes of the caller's workspace it takes, and how many for each thread; None for no argument
            that is scratch.
        read: the numbers of the buffers that it reads.
        has_team: whether threads share its work.
        remarks: what passes said of the kernel, see `portable`.
        machine_code: an object file that defines `ShareableKernel.code_name`.
    """

    taken: tuple[int, ...] | None
    scratch: tuple[int, ...] | None
    read: tuple[int, ...]
    has_team: bool
    remarks: tuple[PortableRemark, ...]
    machine_code: bytes = b""

    def to_bytes(self) -> bytes:
        """The code as bytes."""
        head = json.dumps(asdict(replace(self, machine_code=b"")) | {"machine_code": None}).encode()
        return len(head).to_bytes(8, "little") + head + self.machine_code

    @staticmethod
    def from_bytes(data: bytes) -> KernelCode:
        """The inverse of `to_bytes`."""
        start = 8 + int.from_bytes(data[:8], "little")
        head = json.loads(data[8:start])
        return KernelCode(
            taken=_tuple(head["taken"]),
            scratch=_tuple(head["scratch"]),
            read=tuple(head["read"]),
            has_team=head["has_team"],
            remarks=tuple(PortableRemark(**remark) for remark in head["remarks"]),
            machine_code=data[start:],
        )


@dataclass(frozen=True)
class PortableRemark:
    """A remark on a kernel, whatever that is called and whichever lines of a model it comes from.

    Attributes:
        function: the number of the function that it is about among the kernel's.
        place: the number of an op of that one that has the remark's place; None for a remark without one.
        suffix: what is behind that one's name.
    """

    pass_name: str
    kind: Any
    op: str
    reason: str
    function: int
    place: int | None
    suffix: str

    def on(self, kernel: ShareableKernel) -> Remark:
        """The remark on a kernel of the same text."""
        source, module = (None, None) if self.place is None else place(kernel.locations[self.function][self.place])
        name = kernel.names[self.function] + self.suffix
        return Remark(self.pass_name, self.kind, self.op, self.reason, source, module=module, kernel=name)


def portable(remarks: Sequence[Remark], kernel: ShareableKernel) -> tuple[PortableRemark, ...]:
    """Those of the remarks that are about the kernel."""
    found = []
    for number, name in enumerate(kernel.names):
        about = [remark for remark in remarks if _is_about(remark, name)]
        places = _places(kernel.locations[number]) if about else {}
        for remark in about:
            where, suffix = places.get((remark.source, remark.module)), (remark.kernel or "").removeprefix(name)
            found.append(PortableRemark(remark.pass_name, remark.kind, remark.op, remark.reason, number, where, suffix))
    return tuple(found)


def _places(locations: Sequence[ir.Location]) -> dict[tuple[str | None, str | None], int]:
    """The number of the first location with each place."""
    numbers: dict[tuple[str | None, str | None], int] = {}
    for number, location in enumerate(locations):
        numbers.setdefault(place(location), number)
    return numbers


def _is_about(remark: Remark, name: str) -> bool:
    """Whether a remark is about a function, or about a part of it."""
    kernel = remark.kernel or ""
    return kernel == name or kernel.startswith(f"{name}{CHUNK_OF}")


def _tuple(values: list[int] | None) -> Any:
    return None if values is None else tuple(values)
