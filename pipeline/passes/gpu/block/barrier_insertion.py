"""When the threads of a block have to wait for each other: what each buffer was accessed for since the last barrier."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.ir.matchers import base
from pipeline.mlir import gpu, ir

#: A view of a buffer, how many elements it has, and how many neighbours a thread takes: who has which element.
Numbering = tuple[ir.Value, int, int]


@dataclass(frozen=True)
class Access:
    """That a buffer is read or written, and in which numbering of its elements; None for any other way."""

    buffer: ir.Value
    numbering: Numbering | None
    writes: bool

    def conflicts(self, earlier: Access) -> bool:
        """Whether another thread may have done `earlier` to the same element, one of the two being a write."""
        if not self.writes and not earlier.writes:
            return False
        return self.numbering is None or self.numbering != earlier.numbering


class Order:
    """The accesses since the last barrier."""

    def __init__(self) -> None:
        self._since: dict[ir.Value, list[Access]] = {}

    def access(self, accesses: Iterable[Access]) -> None:
        """Notes accesses that happen next, at once; behind a barrier at the insertion point if one has to wait."""
        new = list(accesses)
        if any(access.conflicts(earlier) for access in new for earlier in self._since.get(base(access.buffer), [])):
            self.barrier()
        for access in new:
            self._since.setdefault(base(access.buffer), []).append(access)

    def barrier(self) -> None:
        """Makes what every thread has written known to all."""
        gpu.BarrierOp()
        self._since = {}
