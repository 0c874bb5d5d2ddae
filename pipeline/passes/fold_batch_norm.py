"""fold-batch-norm: what scales and shifts the channels of a convolution or matrix product goes into its weight and bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.absorption import Absorption, Refusal, Sink, into_producers
from pipeline.analysis.affine import Elementwise, is_last, read_elementwise
from pipeline.analysis.vectors import Number
from pipeline.analysis.weights import Weights
from pipeline.mlir import ir, walk
from pipeline.passes.base import Pass
from pipeline.passes.rewriting import before
from pipeline.passes.weight_side import WeightSide, cast_to, fold_into


@dataclass(frozen=True)
class FoldBatchNorm(Pass):
    """Fold batch norms and other affines of channels into the convolution or matrix product before them.

    (conv(x, w) + b) * s + t  ->  conv(x, w * s) + (b * s + t)

    Covered is every chain of linalg.generics that add, subtract, multiply or divide by numbers that come from weights
    (arguments marked `pipeline.weight`, constants) and run along dims that the weight has, through casts, reshapes,
    transposes, concatenations and slices, out of regions, too. What is re-associated is arithmetic on weights alone;
    that on data keeps its shape: a factor is not distributed over a sum of data. The new weights are ops on tensors,
    which `hoist-to-prepare` moves out of the way.

    Every value between the contraction and the end of the chain must have one user.
    """

    name: ClassVar[str] = "fold-batch-norm"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Folds in one function, in program order: what a fold erases has been visited."""
        weights = Weights(op)
        for generic in walk(op, "linalg.generic"):
            root = read_elementwise(generic, weights)
            if root is not None and is_last(root, weights):
                self._fold(root, weights)

    def _fold(self, root: Elementwise, weights: Weights) -> None:
        """Folds the chain that ends with `root` if that is possible and saves something."""
        try:
            absorption = into_producers(root, weights)
        except Refusal as refusal:
            if any(step.scales and not isinstance(step.vector, Number) for step in root.steps):
                self.missed(root.op, f"not folded: {refusal}")
            return
        if not absorption.saves:
            return
        self.passed(root.op, _report(absorption))
        for sink in absorption.sinks:
            _rewrite(sink, root, weights)
        for one in absorption.gone:
            _drop(one)


def _report(absorption: Absorption) -> str:
    steps = sum(len(one.steps) for one in absorption.gone)
    names = " and ".join(sorted({sink.contraction.op.name for sink in absorption.sinks}))
    return f"folded {steps} operations per element into the weights of {len(absorption.sinks)} {names}"


def _rewrite(sink: Sink, root: Elementwise, weights: Weights) -> None:
    op = sink.contraction.op
    with root.op.location, ir.InsertionPoint(op):
        fold_into(sink.contraction, sink.scale, sink.shift, WeightSide(weights, op))


def _drop(one: Elementwise) -> None:
    """step(x) -> x, or, where it has another type, cast(x)."""
    result = one.op.results[0]
    with before(one.op):
        result.replace_all_uses_with(cast_to(one.data, ir.RankedTensorType(result.type).element_type))
    one.op.erase()
