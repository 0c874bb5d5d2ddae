"""Subtractions of the largest element of a row from all of its elements, with which a softmax begins."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.mlir import defining_op, ir


def argument(view: LinalgOp, value: ir.Value) -> int | None:
    """The number of the operand whose element a value of the body is; None for what the body computes."""
    if not isinstance(value.owner, ir.Block) or value.owner != view.body:
        return None
    return ir.BlockArgument(value).arg_number


def fold_of(value: ir.Value, names: Sequence[str]) -> LinalgOp | None:
    """The reduction of one input, each element of which is read once, that makes a value by one of some ops."""
    view = structured(defining_op(value))
    if view is None or view.inputs != 1 or len(view.op.results) != 1 or not any(view.reductions):
        return None
    folds = fold_ops(view.op)
    return view if folds is not None and folds[0] in names and is_identity(view.maps[0]) else None


def largest_subtracted(view: LinalgOp, difference: ir.Value) -> LinalgOp | None:
    """The fold that makes m, where a value of an elementwise body is y - m with m = max(y) over some dims."""
    subtraction = defining_op(difference)
    if subtraction is None or subtraction.name != "arith.subf" or not view.is_elementwise:
        return None
    y, m = (argument(view, operand) for operand in subtraction.operands)
    if y is None or m is None or not is_identity(view.maps[y]):
        return None
    largest = fold_of(view.op.operands[m], ("arith.maximumf", "arith.maxnumf"))
    if largest is None or len(largest.body_ops) != 1 or largest.op.operands[0] != view.op.operands[y]:
        return None
    return largest if kept(view.maps[m]) == kept(largest.maps[-1]) else None


def kept(indexing: ir.AffineMap) -> list[int]:
    """The loops that are indices, in their order; an index that is always 0 counts for nothing."""
    return [
        ir.AffineDimExpr(expression).position
        for expression in indexing.results
        if isinstance(expression, ir.AffineDimExpr)
    ]
