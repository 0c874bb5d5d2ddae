"""plan-memory: temporaries share one workspace instead of being allocated in every call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.attributes import WORKSPACE
from pipeline.mlir import ir, memref, symbol_name, terminator
from pipeline.passes.bufferization.offset_assignment import become_view, buffers_of, place
from pipeline.passmanager.base import Pass
from pipeline.runtime.interface.entry_point import ALIGNMENT

_PREPARE = "prepare"


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Give each temporary of a function a place in its workspace, an argument marked `pipeline.workspace`.

    Two temporaries share memory where they are not needed at the same time. Planned are buffers of known size that are
    allocated and freed in the same block, be it the function's or that of a branch or a loop, whose every round then
    uses the same memory. How many bytes the workspace needs is left in the function's attribute `pipeline.workspace`.
    @prepare, which runs once, allocates its workspace itself: one piece of memory, whose pages are touched again and
    again, instead of new ones for each weight.
    """

    name: ClassVar[str] = "plan-memory"
    anchor: ClassVar[str] = "func.func"

    alignment: int = field(default=ALIGNMENT, metadata={"help": "every buffer starts at a multiple of so many bytes"})

    def run(self, op: ir.Operation) -> None:
        """Plans one function; leaves those that have no workspace."""
        workspace = workspace_of(op)
        is_own = workspace is None and symbol_name(op) == _PREPARE
        if workspace is None and not is_own:
            return
        buffers = buffers_of(op, self.alignment)
        total = place(buffers)
        if workspace is None:
            if not buffers:
                return
            workspace = _allocated(op, total, self.alignment)
        for buffer in buffers:
            become_view(buffer, workspace)
        op.attributes[WORKSPACE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), total)
        separate = sum(buffer.size for buffer in buffers)
        if buffers:
            self.passed(op, f"{len(buffers)} temporaries of {separate} bytes share {total} bytes")


def _allocated(function: ir.Operation, size: int, alignment: int) -> ir.Value:
    """A workspace that a function of one block allocates as it begins and frees as it ends."""
    block = function.regions[0].blocks[0]
    kind, number = ir.IntegerType.get_signless(8, function.context), ir.IntegerType.get_signless(64, function.context)
    with function.location, ir.InsertionPoint.at_block_begin(block):
        aligned = ir.IntegerAttr.get(number, alignment)
        made = memref.AllocOp(ir.MemRefType.get([size], kind), [], [], alignment=aligned).result
        whole = memref.CastOp(ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], kind), made).result
    with function.location, ir.InsertionPoint(terminator(block)):
        memref.DeallocOp(made)
    return whole


def workspace_of(function: ir.Operation) -> ir.Value | None:
    """The argument of a function that is its workspace; None if it has none."""
    if "arg_attrs" not in function.attributes:
        return None
    for number, marks in enumerate(function.attributes["arg_attrs"]):
        if WORKSPACE in marks:
            return function.regions[0].blocks[0].arguments[number]
    return None
