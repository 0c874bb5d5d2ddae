"""How much work a body is, for deciding what may be computed twice."""

from __future__ import annotations

from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir

#: Moves and conversions: free beside the memory access that they come with.
_FREE = {"index_cast", "index_castui", "constant", "index", "bitcast", "extf", "truncf", "extsi", "extui", "trunci"}
_FREE |= {"sitofp", "uitofp", "fptosi", "fptoui", "yield"}

#: An instruction each.
_CHEAP = {"addf", "subf", "mulf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf", "cmpf", "cmpi", "select"}
_CHEAP |= {"addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrsi", "shrui", "maxsi", "minsi", "maxui", "minui"}
_CHEAP |= {"absf", "absi", "copysign", "fma", "apply"}

#: What a division, a square root or a call costs, in cheap ops.
_DEAR = 10

#: Bodies up to this cost are computed again for a broadcast rather than stored and loaded.
CHEAP_BODY = 2

#: Bodies up to this cost are computed twice rather than stored as a tensor and loaded, if they read nothing as large.
CHEAP_TO_REPEAT = 6


def op_cost(op: ir.Operation) -> int:
    """The cost of an op on numbers in instructions, roughly."""
    short = op.name.partition(".")[2]
    return 0 if short in _FREE else 1 if short in _CHEAP else _DEAR


def body_cost(view: LinalgOp) -> int:
    """The cost of one iteration in instructions, roughly."""
    return sum(map(op_cost, view.body_ops))
