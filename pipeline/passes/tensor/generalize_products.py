"""generalize-products: matrix products, transposes and broadcasts become linalg.generic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import generalize
from pipeline.mlir import ir, linalg
from pipeline.passmanager.base import Pass

_MOVES = ("linalg.transpose", "linalg.broadcast")


@dataclass(frozen=True)
class GeneralizeProducts(Pass):
    """Give named linalg ops that may have any number of loops the form in which they can: linalg.generic.

    Matrix products of all kinds, transposes and broadcasts; convolutions and pools, whose windows fix their loops, keep
    their names.
    """

    name: ClassVar[str] = "generalize-products"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Generalizes the ops of one function."""
        for named in _linalg_ops(op):
            if named.name != "linalg.generic" and (named.name in _MOVES or linalg.isa_contraction_op(named)):
                generalize(named)


def _linalg_ops(function: ir.Operation) -> list[ir.Operation]:
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not op.operation.name.startswith("linalg."):
            return ir.WalkResult.ADVANCE
        found.append(op.operation)
        return ir.WalkResult.SKIP

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
