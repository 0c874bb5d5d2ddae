"""The plan of a workspace, as plan-memory is about to make it."""

from __future__ import annotations

from pipeline.ir.locations import node_names
from pipeline.ir.matchers import BUFFER_VIEWS
from pipeline.mlir import callee, ir, symbol_name
from pipeline.passes.bufferization.offset_assignment import Buffer, buffers_of, ops_in_sequence, place
from pipeline.passes.bufferization.plan_memory import workspace_of
from pipeline.remarks import source_line
from pipeline.report.recording import MemoryPlan, PlannedBuffer
from pipeline.runtime.interface.entry_point import ALIGNMENT


def plan_of(function: ir.Operation) -> MemoryPlan | None:
    """The plan of a function; None of one without temporaries, and of kernels."""
    if workspace_of(function) is None and symbol_name(function) != "prepare":
        return None
    buffers = buffers_of(function, ALIGNMENT)
    total = place(buffers)
    if not buffers:
        return None
    ops = ops_in_sequence(function)
    calls = tuple((number, callee(op)) for number, op in enumerate(ops) if op.name == "func.call")
    return MemoryPlan(symbol_name(function), total, len(ops), tuple(map(_planned, buffers)), calls)


def _planned(buffer: Buffer) -> PlannedBuffer:
    names = node_names(buffer.alloc.location)
    return PlannedBuffer(
        buffer.offset,
        buffer.size,
        buffer.first,
        buffer.last,
        str(buffer.alloc.results[0].type).removeprefix("memref<").removesuffix(">"),
        source_line(buffer.alloc.location),
        names[0] if names else "",
        tuple(dict.fromkeys(_users(buffer.alloc))),
    )


def _users(op: ir.Operation) -> list[str]:
    """The kernels that are given a buffer or a view of it."""
    found = []
    for result in op.results:
        for use in result.uses:
            user = use.owner.operation
            if user.name == "func.call":
                found.append(callee(user))
            elif user.name in BUFFER_VIEWS:
                found += _users(user)
    return found[::-1]
