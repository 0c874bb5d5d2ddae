"""merge-scale-shifts: what is left of norms becomes one multiply and one add per element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.scale_shift import Chain, read_chain, read_elementwise
from pipeline.ir.rewriting import before, empty_like
from pipeline.mlir import ir, walk
from pipeline.passes.weight_folding.weight_builder import WeightSide, apply_affine
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class MergeScaleShifts(Pass):
    """Merge chains of adds and multiplies by numbers from weights into one multiply and one add.

    ((x - m) * r * g) + b  ->  x * (r * g) + (b - m * (r * g))

    Scale and shift are ops on weights, which `hoist-to-prepare` moves out of the way. A chain stays as it is if nothing
    is saved, if its numbers run along different dims, or if they are constants only.
    """

    name: ClassVar[str] = "merge-scale-shifts"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Merges the chains of one function."""
        weights = ConstExprs(op)
        for generic in walk(op, "linalg.generic"):
            chain = read_chain(read_elementwise(generic, weights), weights)
            if chain is not None and chain.reads_weights and chain.saved > 0:
                self.passed(chain.last.op, f"merged {chain.work} into {len(chain.steps) - chain.saved}")
                _merge(chain, weights)


def _merge(chain: Chain, weights: ConstExprs) -> None:
    last = chain.last.op
    result = last.results[0]
    with before(last):
        empty = empty_like(chain.data, ir.RankedTensorType(result.type).element_type)
        merged = apply_affine(chain.data, chain.affine, empty, WeightSide(weights, last))
    result.replace_all_uses_with(merged.results[0])
    for link in chain.links:
        link.op.erase()
