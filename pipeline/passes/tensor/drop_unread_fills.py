"""drop-unread-fills: what is overwritten as a whole is not filled before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import structured
from pipeline.ir.rewriting import is_unused
from pipeline.mlir import defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class DropUnreadFills(PatternPass):
    """Have elementwise ops write to what a fill would have filled.

    torch-mlir fills the results of gathers, which their bodies do not read.
    """

    name: ClassVar[str] = "drop-unread-fills"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def drop(self, generic: ir.Operation) -> bool:
        """elementwise outs(fill(c, out))   ->   elementwise outs(out)"""
        view = structured(generic)
        if view is None or not view.is_elementwise:
            return False
        unread = [
            (number, fill) for number in range(view.inputs, len(generic.operands)) if (fill := _fill(generic, number))
        ]
        for number, fill in unread:
            generic.operands[number] = fill.operands[1]
            self.passed(generic, f"overwrites what is filled for its result {number - view.inputs}")
            if is_unused(fill.results[0]):
                fill.erase()
        return bool(unread)


def _fill(generic: ir.Operation, number: int) -> ir.Operation | None:
    """The linalg.fill that makes an operand."""
    producer = defining_op(generic.operands[number])
    return producer if producer is not None and producer.name == "linalg.fill" else None
