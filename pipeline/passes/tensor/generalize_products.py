"""generalize-products: matrix products, transposes and broadcasts become linalg.generic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import generalize
from pipeline.mlir import ir, linalg
from pipeline.passmanager.patterns import PatternPass, pattern

_MOVES = ("linalg.transpose", "linalg.broadcast")


@dataclass(frozen=True)
class GeneralizeProducts(PatternPass):
    """Give named linalg ops that may have any number of loops the form in which they can: linalg.generic.

    Matrix products of all kinds, transposes and broadcasts; convolutions and pools, whose windows fix their loops, keep
    their names.
    """

    name: ClassVar[str] = "generalize-products"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.*", outermost=True)
    def generalize(self, named: ir.Operation) -> bool:
        """linalg.matmul   ->   linalg.generic"""
        if named.name == "linalg.generic" or not (named.name in _MOVES or linalg.isa_contraction_op(named)):
            return False
        generalize(named)
        return True
