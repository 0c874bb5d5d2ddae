"""fold-scale-shift-forward: a scale and shift of channels goes into the convolutions and matrix products after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.channel_vectors import Vector, combine
from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.scale_shift import Chain, read_chain, read_segments
from pipeline.ir.rewriting import before
from pipeline.mlir import ir
from pipeline.passes.weight_folding.affine_rewriting import drop
from pipeline.passes.weight_folding.scale_absorption import Absorption, Sink, describe, into_consumers
from pipeline.passes.weight_folding.scale_propagation import NotScalableError
from pipeline.passes.weight_folding.weight_builder import WeightSide, fold_into
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class FoldScaleShiftForward(PatternPass):
    """Fold batch norms and other affines of channels into the convolutions and matrix products after them.

    Everything that reads the affine's result must be such a contraction. Padding with zeros between stops a shift, for
    the padding is not shifted, but not a scale. Chains before which `fold-batch-norm` can do its work are gone by then.
    """

    name: ClassVar[str] = "fold-scale-shift-forward"
    anchor: ClassVar[str] = "func.func"

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone; rewrites add to it."""
        return ConstExprs(op)

    @pattern("linalg.*", outermost=True)
    def fold(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """conv(x * s + t, w)   ->   conv(x, w * s) + sum over c, k of w[f, c, k] * t[c]"""
        at_end = next((segment for segment in read_segments(op, weights) if segment.is_at_end), None)
        chain = read_chain(at_end, weights)
        affine = None if chain is None else chain.last.at_result(chain.affine)
        if chain is None or affine is None or not chain.reads_weights or affine.scale is None:
            return False
        try:
            absorption = into_consumers(chain.last.op.results[0], affine, weights)
        except NotScalableError as refusal:
            self.missed(chain.last.op, f"not folded into what reads it: {refusal}")
            return False
        if not absorption.sinks:
            return False
        self.passed(chain.last.op, _report(chain, absorption))
        for sink in absorption.sinks:
            _rewrite(sink, chain, weights)
        for link in chain.links:
            drop(link)
        return True


def _report(chain: Chain, absorption: Absorption) -> str:
    names = " and ".join(sorted({describe(sink.contraction.view.op) for sink in absorption.sinks}))
    return f"folded {chain.work} into the weights of {names} after"


def _rewrite(sink: Sink, chain: Chain, weights: ConstExprs) -> None:
    op = sink.contraction.view.op
    side = WeightSide(weights, op)
    with before(op), chain.last.op.location:
        fold_into(sink.contraction, sink.scale, _shift(sink, side), side)


def _shift(sink: Sink, side: WeightSide) -> Vector | None:
    """What the shift of the data adds to the result, and the init that it takes the place of."""
    if sink.projected is None:
        return None
    shift = side.projected(sink.contraction, sink.projected)
    return shift if sink.shift is None else combine("add", sink.shift, shift)
