"""fold-batch-norm: a scale and shift of channels goes into the convolution or matrix product before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.scale_shift import Elementwise, read_chain, read_segments
from pipeline.ir.rewriting import drop_dead_ops, drop_unused_inputs
from pipeline.mlir import ir
from pipeline.passes.weight_folding.affine_rewriting import bypass, drop
from pipeline.passes.weight_folding.scale_absorption import Absorption, Sink, describe, into_producers
from pipeline.passes.weight_folding.scale_propagation import NotScalableError
from pipeline.passes.weight_folding.weight_builder import WeightSide, fold_into
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class FoldBatchNorm(PatternPass):
    """Fold batch norms and other affines of channels into the convolution or matrix product before them.

    Covered is every chain of linalg.generics that add, subtract, multiply or divide by numbers that come from weights
    (arguments marked `pipeline.weight`, constants) and run along dims that the weight has, through casts, reshapes,
    transposes, concatenations and slices, out of regions, too. What is re-associated is arithmetic on weights alone;
    that on data keeps its shape: a factor is not distributed over a sum of data. The new weights are ops on tensors,
    which `hoist-to-prepare` moves out of the way.

    Every value between the contraction and the end of the chain must have one user.
    """

    name: ClassVar[str] = "fold-batch-norm"
    anchor: ClassVar[str] = "func.func"

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone; rewrites add to it."""
        return ConstExprs(op)

    @pattern("linalg.*", outermost=True)
    def fold(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """(conv(x, w) + b) * s + t   ->   conv(x, w * s) + (b * s + t), where that saves something"""
        segments = [segment for segment in read_segments(op, weights) if segment.operand is not None]
        is_gone = any(segment.is_plain for segment in segments)
        folded = [segment for segment in segments if self._fold(segment, weights)]
        if folded and not is_gone:
            drop_dead_ops(op)
            drop_unused_inputs(op)
        return bool(folded)

    def _fold(self, segment: Elementwise, weights: ConstExprs) -> bool:
        chain = read_chain(segment, weights)
        if chain is None:
            return False
        try:
            absorption = into_producers(segment, weights)
        except NotScalableError as refusal:
            if chain.reads_weights and chain.affine.scale is not None:
                self.missed(segment.op, f"not folded into what it reads: {refusal}")
            return False
        if not absorption.saves:
            return False
        self.passed(segment.op, _report(absorption))
        for sink in absorption.sinks:
            _rewrite(sink, segment, weights)
        for elementwise in absorption.gone[1:]:
            drop(elementwise)
        (drop if segment.is_plain else bypass)(segment)
        return True


def _report(absorption: Absorption) -> str:
    steps = sum(len(elementwise.steps) for elementwise in absorption.gone)
    names = " and ".join(sorted({describe(sink.contraction.view.op) for sink in absorption.sinks}))
    return f"folded {steps} operation{'s' if steps != 1 else ''} per element into the weights of {names}"


def _rewrite(sink: Sink, root: Elementwise, weights: ConstExprs) -> None:
    op = sink.contraction.view.op
    with root.op.location, ir.InsertionPoint(op):
        fold_into(sink.contraction, sink.scale, sink.shift, WeightSide(weights, op))
