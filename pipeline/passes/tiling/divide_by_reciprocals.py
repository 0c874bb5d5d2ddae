"""divide-by-reciprocals: a softmax multiplies its rows by the reciprocal of their sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class DivideByReciprocals(PatternPass):
    """Compute x / s as x * (1 / s), where s = sum(exp(y - max(y))): 1 / s goes out of the loop over a row.

    A division takes a processor ten times as long as a product. Such a sum is at least 1, and at most as large as the
    row is long, so that its reciprocal is a normal number, and the error of the product at most 1.5 ulp. Other divisors
    may be so small that their reciprocals are infinite.
    """

    name: ClassVar[str] = "divide-by-reciprocals"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def multiply(self, generic: ir.Operation) -> bool:
        """generic { x / s }   ->   generic { x * (1 / s) }"""
        view = structured(generic)
        if view is None or not view.is_elementwise:
            return False
        divisions = [op for op in view.body_ops if op.name == "arith.divf" and _divides_by_sum(op, view)]
        for division in divisions:
            self.passed(generic, "multiplies by the reciprocal of the sum of a softmax")
            _rewrite(division)
        return bool(divisions)


def _divides_by_sum(division: ir.Operation, view: LinalgOp) -> bool:
    """Whether a division in a body is one by the sum of a softmax."""
    if not isinstance(division.results[0].type, (ir.F32Type, ir.F64Type)):
        return False
    divisor = _argument(view, division.operands[1])
    return divisor is not None and _is_sum_of_exponentials(divisor)


def _rewrite(division: ir.Operation) -> None:
    x, s = division.operands
    with before(division):
        one = arith.ConstantOp(s.type, ir.FloatAttr.get(s.type, 1.0)).result
        replace(division, [arith.MulFOp(x, arith.DivFOp(one, s).result).result])


def _argument(view: LinalgOp, value: ir.Value) -> ir.Value | None:
    """The operand whose element a value of the body is; None for what the body computes."""
    if not isinstance(value.owner, ir.Block) or value.owner != view.body:
        return None
    return view.op.operands[ir.BlockArgument(value).arg_number]


def _is_sum_of_exponentials(value: ir.Value) -> bool:
    """Whether a value is sum(exp(y - max(y))), with the sum and the maximum over the same dims."""
    total = _fold(value, ("arith.addf",))
    if total is None or total.body_ops[0].name != "arith.addf" or len(total.body_ops) != 1:
        return False
    powers = structured(defining_op(total.op.operands[0]))
    if powers is None or not powers.is_elementwise or len(powers.op.results) != 1 or not is_identity(powers.maps[-1]):
        return False
    subtraction = _exponent(powers)
    if subtraction is None:
        return False
    y, greatest = (_argument(powers, operand) for operand in subtraction.operands)
    largest = None if greatest is None else _fold(greatest, ("arith.maximumf", "arith.maxnumf"))
    if y is None or largest is None or largest.op.operands[0] != y or len(largest.body_ops) != 1:
        return False
    place = list(powers.op.operands).index(greatest)
    return (
        is_identity(powers.maps[list(powers.op.operands).index(y)])
        and largest.reductions == total.reductions
        and _kept(powers.maps[place]) == _kept(largest.maps[-1]) == _kept(total.maps[-1])
    )


def _fold(value: ir.Value, names: tuple[str, ...]) -> LinalgOp | None:
    """The reduction of one input, element by element, that makes a value by one of some ops."""
    view = structured(defining_op(value))
    if view is None or view.inputs != 1 or len(view.op.results) != 1 or not any(view.reductions):
        return None
    folds = fold_ops(view.op)
    return view if folds is not None and folds[0] in names and is_identity(view.maps[0]) else None


def _exponent(powers: LinalgOp) -> ir.Operation | None:
    """The subtraction of which a body yields the exponential, and nothing else."""
    power = defining_op(powers.yielded[0])
    if power is None or power.name != "math.exp" or len(powers.body_ops) != 2:
        return None
    subtraction = defining_op(power.operands[0])
    return subtraction if subtraction is not None and subtraction.name == "arith.subf" else None


def _kept(indexing: ir.AffineMap) -> list[int]:
    """The loops that are indices, in their order; an index that is always 0 counts for nothing."""
    return [
        ir.AffineDimExpr(expression).position
        for expression in indexing.results
        if isinstance(expression, ir.AffineDimExpr)
    ]
