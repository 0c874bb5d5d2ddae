"""Buffers of known size that are allocated and freed in one function, and places for them in one piece of memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, ir, memref

#: Ops whose regions run one after the other.
_SEQUENTIAL = ("scf.if", "scf.for", "scf.while")


@dataclass
class Buffer:
    """A temporary: how large it is, from which op of the function to which it is needed, and where it lies."""

    alloc: ir.Operation
    dealloc: ir.Operation
    size: int
    first: int
    last: int
    offset: int = 0


def buffers_of(function: ir.Operation, alignment: int) -> list[Buffer]:
    """The buffers of known size that are allocated and freed in the same block.

    Ops are numbered in program order, so that what a region needs lies within what the block around it needs.
    """
    ops = ops_in_sequence(function)
    numbers = {op: number for number, op in enumerate(ops)}
    buffers = []
    for alloc in ops:
        if alloc.name != "memref.alloc" or not _fits_workspace(alloc, alignment):
            continue
        freeing = [use.owner.operation for use in alloc.results[0].uses if use.owner.operation.name == "memref.dealloc"]
        if len(freeing) != 1 or freeing[0].block != alloc.block:
            continue
        size = -(-_bytes(alloc.results[0].type) // alignment) * alignment
        buffers.append(Buffer(alloc, freeing[0], size, numbers[alloc], numbers[freeing[0]]))
    return buffers


#: What comes first when places are looked for: what is largest, or what is needed for longest as well.
_ORDERS: tuple[Callable[[Buffer], int], ...] = (
    lambda buffer: buffer.size,
    lambda buffer: buffer.size * (buffer.last - buffer.first),
    lambda buffer: buffer.last - buffer.first,
)


def place(buffers: list[Buffer]) -> int:
    """Gives each buffer the lowest offset that is free while it is needed; returns the size of all.

    Which of them come first is tried in several orders, and the one that takes least memory is kept.
    """
    plans = [_offsets(sorted(buffers, key=order, reverse=True)) for order in _ORDERS]
    total, offsets = min(plans, key=lambda plan: plan[0])
    for buffer in buffers:
        buffer.offset = offsets[id(buffer)]
    return total


def _offsets(buffers: list[Buffer]) -> tuple[int, dict[int, int]]:
    """The size of all, and the offset of each by its identity, if they are placed in this order."""
    placed: list[tuple[int, Buffer]] = []
    for buffer in buffers:
        offset = 0
        meanwhile = [(at, other) for at, other in placed if other.first <= buffer.last and buffer.first <= other.last]
        for at, other in sorted(meanwhile, key=lambda one: one[0]):
            if offset + buffer.size <= at:
                break
            offset = max(offset, at + other.size)
        placed.append((offset, buffer))
    return max((at + buffer.size for at, buffer in placed), default=0), {id(buffer): at for at, buffer in placed}


def become_view(buffer: Buffer, memory: ir.Value, start: ir.Value | None = None) -> None:
    """Has a buffer lie in `memory`, a memref<?xi8>, at its offset, counted from `start` if that is given."""
    with before(buffer.alloc):
        offset = as_index(buffer.offset)
        if start is not None:
            offset = arith.AddIOp(start, offset).result
        view = memref.ViewOp(buffer.alloc.results[0].type, memory, offset, []).result
    buffer.dealloc.erase()
    replace(buffer.alloc, [view])


def ops_in_sequence(function: ir.Operation) -> list[ir.Operation]:
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
