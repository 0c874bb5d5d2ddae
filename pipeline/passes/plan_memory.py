"""plan-memory: temporaries share one workspace instead of being allocated in every call."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.mlir import arith, ir, memref
from pipeline.passes.base import Pass
from pipeline.passes.rewriting import before, replace

#: The attribute of a function's argument that is its workspace, and of a function: how many bytes it needs.
WORKSPACE = "pipeline.workspace"

#: Ops whose regions run one after the other.
_SEQUENTIAL = ("scf.if", "scf.for", "scf.while")


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Give each temporary of a function a place in its workspace, an argument marked `pipeline.workspace`.

    Two temporaries share memory where they are not needed at the same time. Planned are buffers of known size that are
    allocated and freed in the same block, be it the function's or that of a branch or a loop, whose every round then
    uses the same memory. How many bytes the workspace needs is left in the function's attribute `pipeline.workspace`.
    """

    name: ClassVar[str] = "plan-memory"
    anchor: ClassVar[str] = "func.func"

    alignment: int = field(default=64, metadata={"help": "every buffer starts at a multiple of so many bytes"})

    def run(self, op: ir.Operation) -> None:
        """Plans one function; leaves those that have no workspace."""
        workspace = _workspace(op)
        if workspace is None:
            return
        buffers = _buffers(op, self.alignment)
        total = _place(buffers)
        for buffer in buffers:
            with before(buffer.alloc):
                offset = arith.ConstantOp(ir.IndexType.get(), buffer.offset).result
                view = memref.ViewOp(buffer.alloc.results[0].type, workspace, offset, []).result
            buffer.dealloc.erase()
            replace(buffer.alloc, [view])
        op.attributes[WORKSPACE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), total)
        separate = sum(buffer.size for buffer in buffers)
        if buffers:
            self.passed(op, f"{len(buffers)} temporaries of {separate} bytes share {total} bytes")


@dataclass
class _Buffer:
    """A temporary: how large it is, from which op of the function to which it is needed, and where it lies."""

    alloc: ir.Operation
    dealloc: ir.Operation
    size: int
    first: int
    last: int
    offset: int = 0


def _workspace(function: ir.Operation) -> ir.Value | None:
    if "arg_attrs" not in function.attributes:
        return None
    for number, marks in enumerate(function.attributes["arg_attrs"]):
        if WORKSPACE in marks:
            return function.regions[0].blocks[0].arguments[number]
    return None


def _buffers(function: ir.Operation, alignment: int) -> list[_Buffer]:
    """The buffers of known size that are allocated and freed in the same block.

    Ops are numbered in program order, so that what a region needs lies within what the block around it needs.
    """
    ops = _ops_in_sequence(function)
    numbers = {op: number for number, op in enumerate(ops)}
    buffers = []
    for alloc in ops:
        if alloc.name != "memref.alloc" or not _fits_workspace(alloc, alignment):
            continue
        freeing = [use.owner.operation for use in alloc.results[0].uses if use.owner.operation.name == "memref.dealloc"]
        if len(freeing) != 1 or freeing[0].block != alloc.block:
            continue
        size = -(-_bytes(alloc.results[0].type) // alignment) * alignment
        buffers.append(_Buffer(alloc, freeing[0], size, numbers[alloc], numbers[freeing[0]]))
    return buffers


def _ops_in_sequence(function: ir.Operation) -> list[ir.Operation]:
    """The ops of a function and of its branches and loops, outer before inner; not those that run side by side."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        if op == function:
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.ADVANCE if op.name in _SEQUENTIAL else ir.WalkResult.SKIP

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _fits_workspace(alloc: ir.Operation, alignment: int) -> bool:
    """Whether an allocation may be a view of the workspace: of known size, row by row, and aligned as that is."""
    kind = ir.MemRefType(alloc.results[0].type)
    wanted = ir.IntegerAttr(alloc.attributes["alignment"]).value if "alignment" in alloc.attributes else 1
    if not kind.has_static_shape or alignment % wanted != 0:
        return False
    with alloc.location:
        return kind == ir.MemRefType.get(kind.shape, kind.element_type)


def _bytes(kind: ir.MemRefType) -> int:
    return math.prod(kind.shape) * _element_bytes(kind.element_type)


def _element_bytes(element: ir.Type) -> int:
    if isinstance(element, ir.ComplexType):
        return 2 * _element_bytes(element.element_type)
    return 8 if isinstance(element, ir.IndexType) else -(-element.width // 8)


def _place(buffers: list[_Buffer]) -> int:
    """Gives each buffer, largest first, the lowest offset that is free while it is needed; returns the size of all."""
    placed: list[_Buffer] = []
    for buffer in sorted(buffers, key=lambda one: -one.size):
        meanwhile = [other for other in placed if other.first <= buffer.last and buffer.first <= other.last]
        for other in sorted(meanwhile, key=lambda one: one.offset):
            if buffer.offset + buffer.size <= other.offset:
                break
            buffer.offset = max(buffer.offset, other.offset + other.size)
        placed.append(buffer)
    return max((buffer.offset + buffer.size for buffer in placed), default=0)
