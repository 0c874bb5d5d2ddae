"""fold-integer-ranges: comparisons that loop counters, constants and limits decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import structured
from pipeline.ir.rewriting import before, is_unused, replace
from pipeline.mlir import arith, constant_integer, defining_op, ir, walk
from pipeline.passes.control_flow.integer_range import Ranges
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class FoldIntegerRanges(Pass):
    """Fold integer comparisons whose outcome follows from the sizes of the loops.

    Positions, as arange makes them, lie between 0 and the length: they need no wrapping of negative indices, and no
    check where a table has that many rows. A reduction that keeps what it starts from, as the check of all indices
    does then, is that. Sizes and constants have to be known; tensors are followed to the counters they come from, and
    floats that become integers to the comparisons that limit them, as those of the places of grid_sample, if these do
    not let NaN pass.
    """

    name: ClassVar[str] = "fold-integer-ranges"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Folds the comparisons of one function."""
        ranges = Ranges()
        found = [(comparison, ranges.outcome(comparison)) for comparison in walk(op, "arith.cmpi")]
        for compare, known in found:
            if known is not None:
                self.passed(compare, f"is always {str(known).lower()}")
                with before(compare):
                    constant = arith.ConstantOp(ir.IntegerType.get_signless(1), int(known)).result
                replace(compare, [constant])
        for generic in walk(op, "linalg.generic"):
            self._skip(generic)

    def _skip(self, generic: ir.Operation) -> None:
        """Gives the users of results that stay what they start from the latter."""
        view = structured(generic)
        assert view is not None
        for number, result in enumerate(generic.results):
            element = view.body.arguments[view.inputs + number]
            if not is_unused(result) and _keeps(view.yielded[number], element):
                self.passed(generic, "keeps what it starts from")
                result.replace_all_uses_with(generic.operands[view.inputs + number])


def _keeps(yielded: ir.Value, element: ir.Value) -> bool:
    """Whether a value is `element`, or `element and true`."""
    op = defining_op(yielded)
    if op is None or op.name != "arith.andi" or element not in list(op.operands):
        return bool(yielded == element)
    return any(constant_integer(other) not in (0, None) for other in op.operands if other != element)
