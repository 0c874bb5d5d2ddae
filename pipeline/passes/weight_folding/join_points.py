"""Where results meet: the ops that first read a value together with other data."""

from __future__ import annotations

from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.linalg_op import any_structured
from pipeline.ir.reshapes import RESHAPES_AND_CASTS
from pipeline.mlir import ir


def meeting_ops(value: ir.Value, weights: ConstExprs) -> frozenset[ir.Operation]:
    """The elementwise ops that read `value`, or what elementwise ops make of it alone, together with other data.

    Where something else reads it, such as a reduction or a matrix product, that counts as the value's own op.
    """
    made = {value}
    met: dict[ir.Operation, None] = {}
    waiting = [value]
    while waiting:
        met.update(dict.fromkeys(use.owner.operation for use in waiting.pop().uses))
        for op in [op for op in met if _is_made_of(op, made, weights)]:
            del met[op]
            made.update(op.results)
            waiting += op.results
    own = [op for op in met if not _is_elementwise(op)]
    return frozenset((*met, value.owner.operation)) if own else frozenset(met)


def _is_elementwise(op: ir.Operation) -> bool:
    view = any_structured(op)
    return view is not None and view.is_elementwise


def _is_made_of(op: ir.Operation, made: set[ir.Value], weights: ConstExprs) -> bool:
    """Whether an op reads nothing but values that were `made`, and weights."""
    if op.name in RESHAPES_AND_CASTS:
        return True
    view = any_structured(op)
    if view is None or not view.is_elementwise:
        return False
    return all(operand in made or operand in weights for operand in list(op.operands)[: view.inputs])
