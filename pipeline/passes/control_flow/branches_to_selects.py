"""branches-to-selects: where branches are cheap, both are computed and one result is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before, choose, inline_block, replace
from pipeline.mlir import ir, walk_innermost_first
from pipeline.passes.control_flow.if_conversion import why_not_both
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class BranchesToSelects(Pass):
    """Replace a cheap scf.if without side effects by both its branches and a select of what they yield.

    On tensors the select is a linalg.generic, with which the branches and what is around them fuse to one kernel.
    Inside of a linalg.generic, where the condition is one of each element, it leaves a body that can be vectorized.
    Branches that are not elementwise, move many bytes or compute much stay; and so do those with effects or with ops
    that could trap where they did not run: what is computed in vain is thrown away, and must do no harm.
    """

    name: ClassVar[str] = "branches-to-selects"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Replaces what pays in one function, inner branches first."""
        for branch in walk_innermost_first(op, "scf.if"):
            reason = why_not_both(branch)
            if reason is None:
                self.passed(branch, "both branches are computed, and one result chosen")
                _select(branch)
            elif branch.results:
                self.missed(branch, f"the branches stay: {reason}")


def _select(branch: ir.Operation) -> None:
    """r = if c { a } else { b } -> r = select c, a, b."""
    condition = branch.operands[0]
    sides = [inline_block(region.blocks[0], [], branch) for region in branch.regions]
    with before(branch):
        chosen = [choose(condition, then, otherwise) for then, otherwise in zip(*sides, strict=True)]
    replace(branch, chosen)
