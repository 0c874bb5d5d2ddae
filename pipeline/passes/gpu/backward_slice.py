"""What a launch of a device takes along of the ops around it: views, numbers, buffers of its own and loads."""

from __future__ import annotations

from pipeline.mlir import captured_values, defining_op, ir
from pipeline.passes.gpu.thread.launch_patterns import VIEWS, is_pure


def slice_of(ops: list[ir.Operation], may_have_buffers: bool) -> list[ir.Operation]:
    """`ops`, and in front of them what they need of views, numbers, buffers of their own and, where it is safe, loads.

    In program order.
    """
    found: dict[ir.Operation, None] = {}

    def need(value: ir.Value) -> None:
        producer = defining_op(value)
        if producer is None or producer in found:
            return
        if not _goes_along(producer, ops[0]) and not (may_have_buffers and _is_own(value, ops)):
            return
        for operand in producer.operands:
            need(operand)
        found[producer] = None

    for op in ops:
        for value in captured_values(op):
            need(value)
        found[op] = None
    return list(found)


def _goes_along(producer: ir.Operation, user: ir.Operation) -> bool:
    if producer.name in VIEWS or producer.name == "memref.dim" or is_pure(producer):
        return not producer.regions
    return producer.name == "memref.load" and _unchanged_between(producer, user)


def _is_own(buffer: ir.Value, ops: list[ir.Operation]) -> bool:
    """Whether nothing but some ops, and what is inside of them, touches a buffer."""
    owner = defining_op(buffer)
    if owner is None or owner.name not in ("memref.alloc", "memref.alloca"):
        return False
    pending = [use.owner.operation for use in buffer.uses]
    while pending:
        user = pending.pop()
        if user.name in VIEWS and not any(_encloses(op, user) for op in ops):
            pending += [use.owner.operation for use in user.results[0].uses]
        elif user.name != "memref.dim" and not any(_encloses(op, user) for op in ops):
            return False
    return True


def _encloses(op: ir.Operation, inner: ir.Operation | None) -> bool:
    while inner is not None and inner != op:
        inner = None if inner.parent is None else inner.parent.operation
    return inner is not None


def _unchanged_between(load: ir.Operation, user: ir.Operation) -> bool:
    """Whether nothing between the two, in one block, can have written to memory."""
    if load.block != user.block:
        return False
    between = False
    for op in load.block.operations:
        op = op.operation
        if op == user:
            return True
        if between and not (is_pure(op) or op.name in ("memref.load", "memref.alloc", "memref.dim", *VIEWS)):
            return False
        between = between or op == load
    return False
