"""place-barriers: marks on ops become barriers behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.dialects.fusion import BARRIER
from pipeline.ir.attributes import STOP_FUSION
from pipeline.mlir import ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class PlaceBarriers(PatternPass):
    """Put a fusion.barrier behind each tensor that an op marked `pipeline.stop_fusion` gives, and take the mark away.

    Passes between here and the forming of groups may drop marks of ops that they rewrite, but no ops.
    """

    name: ClassVar[str] = "place-barriers"
    anchor: ClassVar[str] = "func.func"

    @pattern(lambda op: STOP_FUSION in op.attributes)
    def place(self, producer: ir.Operation) -> bool:
        """producer {pipeline.stop_fusion}   ->   fusion.barrier(producer)"""
        for result in producer.results:
            if isinstance(result.type, ir.RankedTensorType):
                _place(producer, result)
        del producer.attributes[STOP_FUSION]
        return True


def _place(op: ir.Operation, result: ir.Value) -> None:
    uses = [(use.owner.operation, use.operand_number) for use in result.uses]
    with op.location, ir.InsertionPoint.after(op):
        barrier = ir.Operation.create(BARRIER, results=[result.type], operands=[result])
    for user, number in uses:
        user.operands[number] = barrier.results[0]
