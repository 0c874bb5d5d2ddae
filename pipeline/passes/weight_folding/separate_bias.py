"""separate-bias: what a convolution starts from is added to its result instead, where it fuses with what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import read_contraction, read_init
from pipeline.ir.rewriting import before
from pipeline.mlir import ir
from pipeline.passes.weight_folding.scale_absorption import describe
from pipeline.passes.weight_folding.weight_builder import WeightSide, fold_into
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class SeparateBias(PatternPass):
    """Have a convolution or matrix product start from zero, and add its bias to the result.

    A bias that is broadcast to the size of the result is written there and read again for nothing. An add behind the
    sum is joined with the activation after it. The bias has to come from weights.
    """

    name: ClassVar[str] = "separate-bias"
    anchor: ClassVar[str] = "func.func"

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone; rewrites add to it."""
        return ConstExprs(op)

    @pattern("linalg.*", outermost=True)
    def separate(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """conv(x, w) into broadcast(b)   ->   (conv(x, w) into 0) + b"""
        contraction = read_contraction(op, weights)
        if contraction is None:
            return False
        known, bias = read_init(contraction, weights)
        if not known or bias is None:
            return False
        self.passed(op, f"adds the bias of {describe(op)} to its result")
        with before(op):
            fold_into(contraction, None, bias, WeightSide(weights, op))
        return True
