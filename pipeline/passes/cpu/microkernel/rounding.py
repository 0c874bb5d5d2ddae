"""Rounding floats as they are converted to integers: one instruction of AVX-512 for two."""

from __future__ import annotations

from pipeline.mlir import defining_op, ir

#: How many f32 one of its vectors has.
_LANES = 16


def rounded_by_conversion(op: ir.Operation, lanes: int) -> ir.Value | None:
    """What an op of a body rounds to the nearest i32, as vectors of that many; None for another op."""
    if op.name != "arith.fptosi" or lanes != _LANES or ir.IntegerType(op.results[0].type).width != 32:
        return None
    rounding = defining_op(op.operands[0])
    if rounding is None or rounding.name != "math.roundeven":
        return None
    return rounding.operands[0] if isinstance(rounding.operands[0].type, ir.F32Type) else None


def round_and_convert(value: ir.Value) -> ir.Value:
    """A vector of f32 as the nearest i32, to even in the middle of two."""
    kind = ir.VectorType.get([_LANES], ir.IntegerType.get_signless(32))
    attributes = {
        "intrin": ir.StringAttr.get("llvm.lrint"),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
    }
    return ir.Operation.create("llvm.call_intrinsic", [kind], [value], attributes).result
