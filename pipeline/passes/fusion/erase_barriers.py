"""erase-barriers: the barriers between groups have done their work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.dialects.fusion import BARRIER
from pipeline.ir.rewriting import replace
from pipeline.mlir import ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class EraseBarriers(PatternPass):
    """Replace each fusion.barrier by its operand, once groups have formed: a barrier leaves no code."""

    name: ClassVar[str] = "erase-barriers"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    @pattern(BARRIER)
    def erase(self, barrier: ir.Operation) -> bool:
        """fusion.barrier %x   ->   %x"""
        replace(barrier, [barrier.operands[0]])
        return True
