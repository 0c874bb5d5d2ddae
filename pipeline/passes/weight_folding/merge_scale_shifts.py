"""merge-scale-shifts: what is left of norms becomes one multiply and one add per element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.scale_shift import Chain, read_chain, read_segments
from pipeline.ir.rewriting import before, drop_unused_inputs, empty_like
from pipeline.mlir import ir
from pipeline.passes.weight_folding.affine_rewriting import merge_in_body
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

    @pattern("linalg.*", outermost=True)
    def merge(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """((x - m) * r * g) + b   ->   x * (r * g) + (b - m * (r * g))"""
        chain = _longer_than_needed(op, weights)
        if chain is None:
            return False
        if chain.last.is_plain:
            self._tell(chain)
            _merge(chain, weights)
            return True
        while chain is not None:
            self._tell(chain)
            op = merge_in_body(chain, WeightSide(weights, op))
            for link in chain.links[1:]:
                link.op.erase()
            chain = _longer_than_needed(op, weights)
        drop_unused_inputs(op)
        return True

    def _tell(self, chain: Chain) -> None:
        self.passed(chain.last.op, f"merged {chain.work} into {len(chain.steps) - chain.saved}")


def _longer_than_needed(op: ir.Operation, weights: ConstExprs) -> Chain | None:
    """The first chain that ends in `op` and that fewer steps can do."""
    chains = (read_chain(segment, weights) for segment in read_segments(op, weights))
    found = (chain for chain in chains if chain is not None and chain.reads_weights and chain.saved > 0)
    return next(found, None)


def _merge(chain: Chain, weights: ConstExprs) -> None:
    last = chain.last.op
    result = last.results[0]
    affine = chain.last.at_data(chain.affine)
    assert affine is not None
    with before(last):
        empty = empty_like(chain.data, ir.RankedTensorType(result.type).element_type)
        merged = apply_affine(chain.data, affine, empty, WeightSide(weights, last))
    result.replace_all_uses_with(merged.results[0])
    for link in chain.links:
        link.op.erase()
