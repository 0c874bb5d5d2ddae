"""Which ops on buffers have a vector form."""

from __future__ import annotations

from pipeline.ir.element_types import element_type, is_scalar
from pipeline.mlir import ir

#: Ops of places: what counts elements, and what loads one at an index that is computed.
COUNTER, LOAD = "linalg.index", "memref.load"

#: What has a vector form that lowers to vector instructions, or to a call for each element (math).
_BODY_DIALECTS = ("arith.", "math.")

_NO_VECTOR_FORM = ("arith.index_cast", "arith.index_castui")

#: What a body may do with a bf16, which is held as its bits.
_BF16_OPS = ("arith.extf", "arith.truncf", "arith.select", "arith.constant", "arith.bitcast")


def unsupported(generic: ir.Operation, places: bool = False) -> str | None:
    """Why an op has no vector form; None if it has. With `places` its body may count and load at computed indices."""
    if any(isinstance(operand.type, ir.RankedTensorType) for operand in generic.operands):
        return "it is not on buffers"
    for operand in generic.operands:
        element = element_type(operand)
        if not _is_element(element):
            return f"elements of {element} are not vectorized"
        if not is_scalar(operand) and not _is_row_major(operand.type):
            return "an operand's innermost dimension is strided"
    for op in generic.regions[0].blocks[0].operations:
        op = op.operation
        if op.name == "linalg.yield" or (places and op.name == COUNTER):
            continue
        if places and op.name == LOAD:
            problem = _cannot_be_gathered(op.operands[0])
            if problem:
                return problem
            continue
        indexes = places or op.name not in _NO_VECTOR_FORM
        if not op.name.startswith(_BODY_DIALECTS) or not indexes or op.regions:
            return f"{op.name} has no vector form"
        kinds = [value.type for value in (*op.operands, *op.results)]
        if places:
            kinds = [kind for kind in kinds if not isinstance(kind, ir.IndexType)]
        odd = next((kind for kind in kinds if not _is_element(kind)), None)
        if odd is not None:
            return f"{op.name} computes with a {odd}"
        if op.name not in _BF16_OPS and any(isinstance(kind, ir.BF16Type) for kind in kinds):
            return f"{op.name} computes with a bf16"
    return None


def _cannot_be_gathered(table: ir.Value) -> str | None:
    """Why elements of a buffer cannot be loaded at an index for each lane; None if they can."""
    element = element_type(table)
    if not _is_element(element):
        return f"elements of {element} are not vectorized"
    return None if _is_row_major(table.type) else "a table's innermost dimension is strided"


def _is_element(kind: ir.Type) -> bool:
    """Whether vectors may have elements of a type."""
    if isinstance(kind, ir.IntegerType):
        return kind.is_signless and kind.width in (1, 8, 16, 32, 64)
    return isinstance(kind, (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type))


def _is_row_major(kind: ir.MemRefType) -> bool:
    strides, _ = kind.get_strides_and_offset()
    return not strides or strides[-1] == 1
