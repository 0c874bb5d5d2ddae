"""Subtractions of the largest element of a row from all of its elements, with which a softmax begins.

Loops of one iteration, and the indices that they are, count for nothing: an attention of one image has them in some of
its ops. The others are told by their places among each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.indexing_maps import loop_of
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
    return view if folds is not None and folds[0] in names and is_in_order(view, 0) else None


def largest_subtracted(view: LinalgOp, difference: ir.Value) -> LinalgOp | None:
    """The fold that makes m, where a value of an elementwise body is y - m with m = max(y) over some dims."""
    subtraction = defining_op(difference)
    if subtraction is None or subtraction.name != "arith.subf" or not view.is_elementwise:
        return None
    y, m = (argument(view, operand) for operand in subtraction.operands)
    if y is None or m is None or not is_in_order(view, y):
        return None
    largest = fold_of(view.op.operands[m], ("arith.maximumf", "arith.maxnumf"))
    if largest is None or len(largest.body_ops) != 1 or largest.op.operands[0] != view.op.operands[y]:
        return None
    of_m = rows(view, m)
    return largest if of_m is not None and of_m == rows(largest, 1) else None


def rows(view: LinalgOp, operand: int) -> list[int] | None:
    """The places of the loops that are indices of an operand, in their order; None if an index is no loop and not 0."""
    long = [loop for loop, size in enumerate(view.sizes) if size != 1]
    loops = []
    for expression in view.maps[operand].results:
        loop = loop_of(expression)
        if loop is None and expression != ir.AffineConstantExpr.get(0):
            return None
        if loop in long:
            loops.append(long.index(loop))
    return loops


def is_in_order(view: LinalgOp, operand: int) -> bool:
    """Whether an operand has an element for each iteration, in the order of the loops."""
    return rows(view, operand) == list(range(sum(size != 1 for size in view.sizes)))


def reduced(view: LinalgOp) -> list[int]:
    """The places of the loops that are reductions."""
    long = [loop for loop, size in enumerate(view.sizes) if size != 1]
    return [place for place, loop in enumerate(long) if view.reductions[loop]]
