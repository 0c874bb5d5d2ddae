"""merge-scale-shifts: what is left of norms becomes one multiply and one add per element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.scale_shift import Chain, read_chain, read_elementwise
from pipeline.ir.rewriting import before, empty_like
from pipeline.mlir import ir
from pipeline.passes.weight_folding.weight_builder import WeightSide, apply_affine
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class MergeScaleShifts(PatternPass):
    """Merge chains of adds and multiplies by numbers from weights into one multiply and one add.

    Scale and shift are ops on weights, which `hoist-to-prepare` moves out of the way. A chain stays as it is if nothing
    is saved, if its numbers run along different dims, or if they are constants only.
    """

    name: ClassVar[str] = "merge-scale-shifts"
    anchor: ClassVar[str] = "func.func"

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone; rewrites add to it."""
        return ConstExprs(op)

    @pattern("linalg.generic")
    def merge(self, generic: ir.Operation, weights: ConstExprs) -> bool:
        """((x - m) * r * g) + b   ->   x * (r * g) + (b - m * (r * g))"""
        chain = read_chain(read_elementwise(generic, weights), weights)
        if chain is None or not chain.reads_weights or chain.saved <= 0:
            return False
        self.passed(chain.last.op, f"merged {chain.work} into {len(chain.steps) - chain.saved}")
        _merge(chain, weights)
        return True


def _merge(chain: Chain, weights: ConstExprs) -> None:
    last = chain.last.op
    result = last.results[0]
    with before(last):
        empty = empty_like(chain.data, ir.RankedTensorType(result.type).element_type)
        merged = apply_affine(chain.data, chain.affine, empty, WeightSide(weights, last))
    result.replace_all_uses_with(merged.results[0])
    for link in chain.links:
        link.op.erase()
