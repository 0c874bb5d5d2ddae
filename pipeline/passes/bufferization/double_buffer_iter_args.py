"""double-buffer-iter-args: a loop's iter_args alternate between buffers, with no allocation and no copy in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.iter_args import Carry, carries_of
from pipeline.ir.element_types import byte_size
from pipeline.ir.kernels import has_control_flow
from pipeline.mlir import ir, walk_innermost_first
from pipeline.passes.bufferization.iter_arg_buffers import Rotation, rotate
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class DoubleBufferIterArgs(Pass):
    """Give the tensors of known size that a loop carries, and computes anew in each round, buffers of one allocation.

    There is a buffer for each such tensor and a spare one for each that is computed: a round computes the new value
    into the spare buffer, and the buffer of the old value is the spare one of the next round. The loop carries where in
    the allocation they are. A value that two carries hand to each other stays where it is. Carries that are updated in
    place, by an insertion, are left to bufferization. Runs on kernels in destination-passing style.
    """

    name: ClassVar[str] = "double-buffer-iter-args"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Does so for every loop of one function, inner ones first."""
        if not has_control_flow(op):
            return
        for loop in walk_innermost_first(op, "scf.for", "scf.while"):
            self._rotate(loop)

    def _rotate(self, loop: ir.Operation) -> None:
        carries = carries_of(loop)
        if carries is None:
            self.missed(loop, "its carries stay with bufferization: it hands on what it does not carry")
            return
        rotated = [carry for carry in carries if _rotates(carry)]
        if not rotated:
            return
        others = [carry for carry in carries if isinstance(carry.kind, ir.RankedTensorType) and carry not in rotated]
        if any(not carry.is_kept and not carry.is_updated_in_place for carry in others):
            self.missed(loop, "its carries stay with bufferization: one has a size that is known at run time only")
            return
        plan = Rotation.of(rotated)
        self.passed(loop, f"{len(rotated)} carried tensors take turns in {plan.slots} buffers")
        rotate(loop, plan)


def _rotates(carry: Carry) -> bool:
    """Whether a carry is a tensor of known size that is computed anew, or exchanged with another."""
    kind = carry.kind
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape or carry.is_kept:
        return False
    is_plain = isinstance(kind.element_type, (ir.IntegerType, ir.FloatType)) and bool(byte_size(kind))
    return is_plain and not carry.is_updated_in_place
