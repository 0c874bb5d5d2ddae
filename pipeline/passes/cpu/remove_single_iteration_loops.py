"""remove-single-iteration-loops: what loops that run once would run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.trip_count import trip_count
from pipeline.ir.rewriting import inline_block, replace
from pipeline.mlir import ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class RemoveSingleIterationLoops(PatternPass):
    """Put the body of an scf.for that runs once in its place.

    Behind it the code that LLVM gets has fewer blocks, and scratch that is indexed by constants, which becomes
    registers.
    """

    name: ClassVar[str] = "remove-single-iteration-loops"
    anchor: ClassVar[str] = "func.func"

    @pattern("scf.for", users_first=True)
    def inline(self, loop: ir.Operation) -> bool:
        """for %i = 3 to 4 step 1 { body(%i) }   ->   body(3)"""
        if trip_count(loop) != 1:
            return False
        first, _, _, *initial = loop.operands
        replace(loop, inline_block(loop.regions[0].blocks[0], [first, *initial], loop))
        return True
