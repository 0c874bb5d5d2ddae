"""Sums of data: linalg ops that add two tensors, and trees of them."""

from __future__ import annotations

from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import any_structured
from pipeline.mlir import defining_op, ir, walk


def read_sums(function: ir.Operation, weights: ConstExprs) -> list[ir.Operation]:
    """The last op of each sum, in program order."""
    sums = [op for op in walk(function, "linalg.generic", "linalg.add") if is_sum(op, weights)]
    members = set(sums)
    return [op for op in sums if (reader := _only_reader(op)) is None or reader not in members]


def is_sum(op: ir.Operation | None, weights: ConstExprs) -> bool:
    """Whether `op` is x + y, both data of the result's type."""
    if op is None or op.name not in ("linalg.generic", "linalg.add") or len(op.operands) != 3:
        return False
    if any(operand.type != op.results[0].type or operand in weights for operand in list(op.operands)[:2]):
        return False
    view = any_structured(op)
    if view is None or not all(map(is_identity, view.maps)) or len(view.body_ops) != 1:
        return False
    first, arguments = view.body_ops[0], list(view.body.arguments)
    return first.name == "arith.addf" and list(first.operands) in (arguments[:2], arguments[1::-1])


def terms(last: ir.Operation, weights: ConstExprs) -> list[tuple[ir.Operation, int]]:
    """Where the terms of a sum stand, first ones first: an op of the sum and the number of its operand."""
    found: list[tuple[ir.Operation, int]] = []
    places = [(last, 1), (last, 0)]
    while places:
        op, number = places.pop()
        producer = defining_op(op.operands[number])
        reader = _only_reader(producer) if producer is not None and is_sum(producer, weights) else None
        if producer is not None and reader is not None and reader == op:
            places += [(producer, 1), (producer, 0)]
        else:
            found.append((op, number))
    return found


def _only_reader(op: ir.Operation) -> ir.Operation | None:
    """The op in the same block that alone reads the result of `op`, once; None if there is none."""
    uses = [use.owner.operation for use in op.results[0].uses]
    return uses[0] if len(uses) == 1 and uses[0].block == op.block else None
