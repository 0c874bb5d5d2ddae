"""place-barriers: marks on ops become barriers behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.dialects.fusion import BARRIER
from pipeline.ir.attributes import STOP_FUSION
from pipeline.mlir import ir
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class PlaceBarriers(Pass):
    """Put a fusion.barrier behind each tensor that an op marked `pipeline.stop_fusion` gives, and take the mark away.

    Passes between here and the forming of groups may drop marks of ops that they rewrite, but no ops.
    """

    name: ClassVar[str] = "place-barriers"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Places the barriers of one function."""
        marked: list[ir.Operation] = []

        def visit(inner: ir.Operation) -> ir.WalkResult:
            if STOP_FUSION in inner.operation.attributes:
                marked.append(inner.operation)
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        for producer in marked:
            for result in producer.results:
                if isinstance(result.type, ir.RankedTensorType):
                    _place(producer, result)
            del producer.attributes[STOP_FUSION]


def _place(op: ir.Operation, result: ir.Value) -> None:
    uses = [(use.owner.operation, use.operand_number) for use in result.uses]
    with op.location, ir.InsertionPoint.after(op):
        barrier = ir.Operation.create(BARRIER, results=[result.type], operands=[result])
    for user, number in uses:
        user.operands[number] = barrier.results[0]
