"""The sum of the exponentials of a softmax, as ops of a group compute it."""

from __future__ import annotations

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.mlir import defining_op, ir


def body_operand(view: LinalgOp, value: ir.Value) -> ir.Value | None:
    """The operand whose element a value of the body is; None for what the body computes."""
    if not isinstance(value.owner, ir.Block) or value.owner != view.body:
        return None
    return view.op.operands[ir.BlockArgument(value).arg_number]


def summed_exponentials(value: ir.Value) -> LinalgOp | None:
    """exp(y - max(y)) of which a value is the sum, over the dims that the maximum is over; None for other values."""
    total = _fold(value, ("arith.addf",))
    if total is None or len(total.body_ops) != 1 or not is_identity(total.maps[0]):
        return None
    powers = structured(defining_op(total.op.operands[0]))
    if powers is None or not powers.is_elementwise or len(powers.op.results) != 1 or not is_identity(powers.maps[-1]):
        return None
    subtraction = _exponent(powers)
    if subtraction is None:
        return None
    y, greatest = (body_operand(powers, operand) for operand in subtraction.operands)
    largest = None if greatest is None else _fold(greatest, ("arith.maximumf", "arith.maxnumf"))
    if y is None or largest is None or largest.op.operands[0] != y or len(largest.body_ops) != 1:
        return None
    operands = list(powers.op.operands)
    kept = _kept(powers, operands.index(greatest))
    is_softmax = (
        powers.maps[operands.index(y)] == largest.maps[0]
        and largest.reductions == total.reductions
        and kept == _kept(largest, -1) == _kept(total, -1)
    )
    return powers if is_softmax else None


def _fold(value: ir.Value, names: tuple[str, ...]) -> LinalgOp | None:
    """The reduction of one input that makes a value by one of some ops."""
    view = structured(defining_op(value))
    if view is None or view.inputs != 1 or len(view.op.results) != 1 or not any(view.reductions):
        return None
    folds = fold_ops(view.op)
    return view if folds is not None and folds[0] in names else None


def _exponent(powers: LinalgOp) -> ir.Operation | None:
    """The subtraction of which a body yields the exponential, and nothing else."""
    power = defining_op(powers.yielded[0])
    if power is None or power.name != "math.exp" or len(powers.body_ops) != 2:
        return None
    subtraction = defining_op(power.operands[0])
    return subtraction if subtraction is not None and subtraction.name == "arith.subf" else None


def _kept(view: LinalgOp, operand: int) -> list[int]:
    """The loops that are indices of an operand, in their order; those that run once count for nothing."""
    return [loop for loop in view.loops_read(operand) if view.sizes[loop] != 1]
