"""scratch-to-stack: what a kernel that is a whole loop keeps between its steps lies on its stack."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.element_types import element_bytes
from pipeline.ir.kernels import LOOP, kernel_kind
from pipeline.ir.rewriting import replace
from pipeline.mlir import ir, memref, walk
from pipeline.passes.bufferization.stack_buffers import is_local
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class ScratchToStack(Pass):
    """Make the allocations of a kernel that is a loop places on its stack, all in front of the loop.

    So that no round allocates, and the stack does not grow from round to round. A buffer that a round hands on, or that
    is too large, stays on the heap. Runs on buffers, before it is decided where these are freed.
    """

    name: ClassVar[str] = "scratch-to-stack"
    anchor: ClassVar[str] = "func.func"

    limit: int = field(default=1 << 18, metadata={"help": "how many bytes a kernel may have on its stack"})

    def run(self, op: ir.Operation) -> None:
        """Does so for one function, if it is such a kernel."""
        if kernel_kind(op) != LOOP:
            return
        left = self.limit
        for alloc in walk(op, "memref.alloc"):
            kind = ir.MemRefType(alloc.results[0].type)
            size = math.prod(kind.shape) * element_bytes(alloc.results[0]) if kind.has_static_shape else None
            if size is None or size > left:
                self.missed(
                    alloc, "is allocated: its size is not known" if size is None else f"{size} bytes are too many"
                )
            elif not is_local(alloc.results[0]):
                self.missed(alloc, "is allocated: it is handed on")
            else:
                left -= size
                _move(alloc, op.regions[0].blocks[0])


def _move(alloc: ir.Operation, entry: ir.Block) -> None:
    alignment = alloc.attributes.get("alignment")
    with alloc.location, ir.InsertionPoint.at_block_begin(entry):
        place = memref.AllocaOp(alloc.results[0].type, [], [], alignment=alignment).result
    replace(alloc, [place])
