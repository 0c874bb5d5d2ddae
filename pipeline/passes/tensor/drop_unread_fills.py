"""drop-unread-fills: what is overwritten as a whole is not filled before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import structured
from pipeline.ir.rewriting import is_unused
from pipeline.mlir import defining_op, ir, walk
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class DropUnreadFills(Pass):
    """Have elementwise ops write to what a fill would have filled.

    elementwise outs(fill(c, out))   ->   elementwise outs(out)

    torch-mlir fills the results of gathers, which their bodies do not read.
    """

    name: ClassVar[str] = "drop-unread-fills"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Rewrites one function."""
        for generic in walk(op, "linalg.generic"):
            view = structured(generic)
            if view is None or not view.is_elementwise:
                continue
            for number in range(view.inputs, len(generic.operands)):
                fill = defining_op(generic.operands[number])
                if fill is None or fill.name != "linalg.fill":
                    continue
                generic.operands[number] = fill.operands[1]
                self.passed(generic, f"overwrites what is filled for its result {number - view.inputs}")
                if is_unused(fill.results[0]):
                    fill.erase()
