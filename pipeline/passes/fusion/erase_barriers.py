"""erase-barriers: the barriers between groups have done their work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.dialects.fusion import BARRIER
from pipeline.ir.rewriting import replace
from pipeline.mlir import ir, walk
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class EraseBarriers(Pass):
    """Replace each fusion.barrier by its operand, once groups have formed: a barrier leaves no code."""

    name: ClassVar[str] = "erase-barriers"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Erases the barriers of one function."""
        for barrier in walk(op, BARRIER):
            replace(barrier, [barrier.operands[0]])
