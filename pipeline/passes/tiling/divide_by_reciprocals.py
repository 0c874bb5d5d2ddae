"""divide-by-reciprocals: a softmax multiplies its rows by the reciprocal of their sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, ir
from pipeline.passes.tiling.softmax_sum import body_operand, summed_exponentials
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
    divisor = body_operand(view, division.operands[1])
    return divisor is not None and summed_exponentials(divisor) is not None


def _rewrite(division: ir.Operation) -> None:
    x, s = division.operands
    with before(division):
        one = arith.ConstantOp(s.type, ir.FloatAttr.get(s.type, 1.0)).result
        replace(division, [arith.MulFOp(x, arith.DivFOp(one, s).result).result])
