"""inline-constant-regions: control flow whose way is known is replaced by the way it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.trip_count import trip_count
from pipeline.ir.rewriting import inline_block, replace
from pipeline.mlir import constant_integer, ir, terminator, walk_innermost_first
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class InlineConstantRegions(Pass):
    """Replace scf.if, scf.for and scf.while by the region that is known to run, or by nothing.

    Covered are an `scf.if` on a constant, an `scf.for` that runs never or once, and an `scf.while` whose condition is
    constantly false. Inner ops go first. Which values are constant is for `canonicalize` to find out before.
    """

    name: ClassVar[str] = "inline-constant-regions"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Inlines what can be in one function."""
        for inner in walk_innermost_first(op, "scf.if", "scf.for", "scf.while"):
            if inner.name == "scf.if":
                self._inline_if(inner)
            elif inner.name == "scf.for":
                self._inline_for(inner)
            else:
                self._inline_while(inner)

    def _inline_if(self, op: ir.Operation) -> None:
        """scf.if true { a } else { b } -> a."""
        condition = constant_integer(op.operands[0])
        if condition is None:
            return
        self.passed(op, f"the condition is always {'true' if condition else 'false'}")
        taken = op.regions[0] if condition else op.regions[1]
        replace(op, inline_block(taken.blocks[0], [], op) if len(taken.blocks) else [])

    def _inline_for(self, op: ir.Operation) -> None:
        """scf.for %i = 3 to 4 step 1 { a(%i) } -> a(3)."""
        trips = trip_count(op)
        if trips is None:
            return
        if trips > 1:
            self.missed(op, f"the loop runs {trips} times")
            return
        self.passed(op, f"the loop {'runs once' if trips else 'never runs'}")
        initial = list(op.operands)[3:]
        if trips:
            initial = inline_block(op.regions[0].blocks[0], [op.operands[0], *initial], op)
        replace(op, initial)

    def _inline_while(self, op: ir.Operation) -> None:
        """scf.while { a; condition(false) } do { b } -> a."""
        before = op.regions[0].blocks[0]
        condition = constant_integer(terminator(before).operands[0])
        if condition is None:
            return
        if condition:
            self.missed(op, "the condition is always true, the loop does not end")
            return
        self.passed(op, "the condition is always false")
        _, *handed_on = inline_block(before, list(op.operands), op)
        replace(op, handed_on)
