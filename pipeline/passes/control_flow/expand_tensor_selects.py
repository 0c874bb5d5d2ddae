"""expand-tensor-selects: choosing between two tensors is a linalg op, or a copy, where memory could be mixed up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.element_types import byte_size
from pipeline.ir.rewriting import before, choose, replace
from pipeline.mlir import bufferization, ir
from pipeline.passes.control_flow.if_conversion import CALL_BYTES
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ExpandTensorSelects(PatternPass):
    """Rewrite an arith.select of tensors, which `canonicalize` makes of branches that only hand on what there is.

    On buffers it chooses an address. That costs nothing where the result is only read; where it is small, a linalg op
    that chooses each element costs less, since it fuses. A result that a loop carries or that is updated shares memory
    with one of the tensors, nobody knows which: there a linalg op makes a new tensor, or, for a size that is known at
    run time only, a copy.
    """

    name: ClassVar[str] = "expand-tensor-selects"
    anchor: ClassVar[str] = "func.func"

    @pattern("arith.select")
    def expand(self, select: ir.Operation) -> bool:
        """select c, a, b   ->   generic { select c, a[i], b[i] }, or a copy of select c, a, b"""
        if not isinstance(select.results[0].type, ir.RankedTensorType) or str(select.operands[0].type) != "i1":
            return False
        size = byte_size(select.results[0].type)
        is_read = all(map(_reads, select.results[0].uses))
        if is_read and (size is None or size > CALL_BYTES):
            self.missed(select, "chooses an address: its result is only read")
            return False
        if size is None:
            self.passed(select, "its result is copied: it may be written to")
            _copy(select)
            return True
        self.passed(select, "chooses element by element")
        with before(select):
            value = choose(*select.operands)
        replace(select, [value])
        return True


def _copy(select: ir.Operation) -> None:
    """Has what uses the result of a select use a copy of it."""
    result = select.results[0]
    with before(select):
        copy = bufferization.AllocTensorOp(result.type, [], copy=result).operation
    copy.move_after(select)
    result.replace_all_uses_except(copy.results[0], copy)


def _reads(use: ir.OpOperand) -> bool:
    """Whether a use only reads a tensor, and hands on nothing that shares its memory."""
    op = use.owner.operation
    if op.name.startswith("linalg."):
        return use.operand_number < len(op.operands) - len(op.results)
    if op.name in ("tensor.insert_slice", "tensor.insert"):
        return use.operand_number == 0
    return op.name in ("tensor.extract", "tensor.dim", "func.return")
