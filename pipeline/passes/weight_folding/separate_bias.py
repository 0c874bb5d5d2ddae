"""separate-bias: what a convolution starts from is added to its result instead, where it fuses with what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import contractions, read_init
from pipeline.ir.rewriting import before
from pipeline.mlir import ir
from pipeline.passes.weight_folding.scale_absorption import describe
from pipeline.passes.weight_folding.weight_builder import WeightSide, fold_into
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class SeparateBias(Pass):
    """Have a convolution or matrix product start from zero, and add its bias to the result.

    conv(x, w) into broadcast(b)  ->  (conv(x, w) into 0) + b

    A bias that is broadcast to the size of the result is written there and read again for nothing. An add behind the
    sum is joined with the activation after it. The bias has to come from weights.
    """

    name: ClassVar[str] = "separate-bias"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Separates the biases of one function."""
        weights = ConstExprs(op)
        for contraction in contractions(op, weights):
            known, bias = read_init(contraction, weights)
            if known and bias is not None:
                self.passed(contraction.view.op, f"adds the bias of {describe(contraction.view.op)} to its result")
                with before(contraction.view.op):
                    fold_into(contraction, None, bias, WeightSide(weights, contraction.view.op))
