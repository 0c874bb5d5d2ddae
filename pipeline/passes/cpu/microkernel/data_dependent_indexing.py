"""Bodies of linalg ops on buffers that compute places: with counters of loops, indices, and loads at indices."""

from __future__ import annotations

from pipeline.analysis.vectorizable import COUNTER, LOAD
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import constant_integer, defining_op, ir

#: Ops that an index comes from or goes to.
_CASTS = ("arith.index_cast", "arith.index_castui")


def computes_places(body: ir.Block) -> bool:
    """Whether a body has counters of loops, or loads at computed places."""
    return any(op.operation.name in (COUNTER, LOAD, *_CASTS) for op in body.operations)


def uniform_ops(view: LinalgOp, dim: int) -> list[ir.Operation]:
    """The ops of a body that compute one number for all steps of the loop `dim`, in their order."""
    varying = set(_varying_arguments(view, dim))
    found = []
    for op in view.body_ops:
        counts = op.name == COUNTER and ir.IntegerAttr(op.attributes["dim"]).value == dim
        if counts or any(operand in varying for operand in op.operands) or not _computes_numbers(op):
            varying.update(op.results)
        else:
            found.append(op)
    return found


def _varying_arguments(view: LinalgOp, dim: int) -> list[ir.Value]:
    """The arguments that are other elements in each step of a loop; what an output holds always is."""
    return [
        argument
        for number, argument in enumerate(view.body.arguments)
        if number >= view.inputs or view.moves(number, dim) != "fixed"
    ]


def _computes_numbers(op: ir.Operation) -> bool:
    """Whether an op has one result, and it and its operands are held in vectors and as numbers alike."""
    kinds = [value.type for value in (*op.operands, *op.results) if not isinstance(value.type, ir.MemRefType)]
    plain = all(not isinstance(kind, (ir.BF16Type, ir.F16Type)) for kind in kinds)
    return len(op.results) == 1 and plain and not (op.name == LOAD and str(op.results[0].type) == "i1")


def step_along(index: ir.Value, dim: int, varying: set[ir.Value]) -> int | None:
    """What each step of the loop `dim` adds to an index; None if that is not known.

    `varying` has the values that are not the same in all steps.
    """
    if index not in varying:
        return 0
    op = defining_op(index)
    if op is None:
        return None
    if op.name == COUNTER:
        return 1
    if op.name in _CASTS:
        return step_along(op.operands[0], dim, varying)
    if op.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    left, right = (step_along(operand, dim, varying) for operand in op.operands)
    if left is None or right is None:
        return None
    if op.name == "arith.muli":
        step, other = (left, op.operands[1]) if op.operands[0] in varying else (right, op.operands[0])
        factor = constant_integer(other)
        return None if factor is None else step * factor
    return left + right if op.name == "arith.addi" else left - right
