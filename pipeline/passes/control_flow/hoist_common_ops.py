"""hoist-common-ops: what both branches compute is computed in front of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.code_motion import has_effects, why_not_speculated
from pipeline.ir.equivalence import is_same
from pipeline.ir.rewriting import replace
from pipeline.mlir import captured_values, ir, is_inside, walk_innermost_first
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class HoistCommonOps(Pass):
    """Move ops that both branches of an scf.if have, on the same operands, in front of it.

    One of the branches runs, so they are computed on every way. One that may trap does not pass an op with effects or
    one that may not end. What is worth more inside, where it fuses, `sink-into-branches` puts back.
    """

    name: ClassVar[str] = "hoist-common-ops"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Hoists from every scf.if of one function, inner ones first, so that ops can leave several."""
        for branch in walk_innermost_first(op, "scf.if"):
            if all(len(region.blocks) for region in branch.regions):
                self._hoist(branch)

    def _hoist(self, branch: ir.Operation) -> None:
        """if c { y = f(x) } else { z = f(x) } -> y = f(x); if c { } else { }."""
        then, otherwise = ([op.operation for op in region.blocks[0].operations][:-1] for region in branch.regions)
        blocked = _Blocked(then), _Blocked(otherwise)
        for op in then:
            if op.name == "arith.constant" or has_effects(op):
                continue
            if any(is_inside(value, branch) for value in captured_values(op)):
                continue
            twin = next((other for other in otherwise if is_same(op, other, {})), None)
            if twin is None:
                continue
            if why_not_speculated(op) and (blocked[0].before(op) or blocked[1].before(twin)):
                self.missed(op, "both branches compute it, but it may trap, and comes after an effect")
                continue
            self.passed(op, "both branches compute it")
            otherwise.remove(twin)
            op.move_before(branch)
            replace(twin, list(op.results))


class _Blocked:
    """Which ops of a block come after an effect or after what may not end."""

    def __init__(self, ops: list[ir.Operation]):
        self._positions = {op: number for number, op in enumerate(ops)}
        stops = [number for op, number in self._positions.items() if has_effects(op) or _may_not_end(op)]
        self._first = min(stops, default=len(ops))

    def before(self, op: ir.Operation) -> bool:
        return self._first < self._positions[op]


def _may_not_end(op: ir.Operation) -> bool:
    return bool(op.regions) and "may not end" in (why_not_speculated(op) or "")
