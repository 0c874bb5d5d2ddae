"""Rounding floats by one instruction of AVX-512: as they are converted to integers, and to bf16."""

from __future__ import annotations

from pipeline.mlir import arith, defining_op, ir, vector

#: How many f32 one of its vectors has.
VECTOR_LANES = 16


def rounded_by_conversion(op: ir.Operation, lanes: int) -> ir.Value | None:
    """What an op of a body rounds to the nearest i32, as vectors of that many; None for another op."""
    if op.name != "arith.fptosi" or lanes != VECTOR_LANES or ir.IntegerType(op.results[0].type).width != 32:
        return None
    rounding = defining_op(op.operands[0])
    if rounding is None or rounding.name != "math.roundeven":
        return None
    return rounding.operands[0] if isinstance(rounding.operands[0].type, ir.F32Type) else None


def round_and_convert(value: ir.Value) -> ir.Value:
    """A vector of f32 as the nearest i32, to even in the middle of two."""
    return _call("llvm.lrint", value, element=ir.IntegerType.get_signless(32))


def is_rounding_to_bf16(op: ir.Operation, lanes: int) -> bool:
    """Whether AVX512_BF16 has an instruction for an op of a body, in vectors of that many."""
    if op.name != "arith.truncf" or lanes != VECTOR_LANES:
        return False
    return isinstance(op.results[0].type, ir.BF16Type) and isinstance(op.operands[0].type, ir.F32Type)


def nearest_bf16(value: ir.Value) -> ir.Value:
    """The bits of the bf16 nearest to a vector of f32. Denormal ones are 0, as in dot products of bf16."""
    bits = ir.VectorType.get([VECTOR_LANES], ir.IntegerType.get_signless(16))
    return arith.BitcastOp(bits, _call("llvm.x86.avx512bf16.cvtneps2bf16.512", value, element=ir.BF16Type.get())).result


def pairs_of_nearest_bf16(first: ir.Value, second: ir.Value) -> ir.Value:
    """Words of the bf16 nearest to two vectors of f32, those of the first in the lowest bits. Denormal ones are 0."""
    one_behind_the_other = _call("llvm.x86.avx512bf16.cvtne2ps2bf16.512", second, first, element=ir.BF16Type.get())
    order = [lane + half for lane in range(VECTOR_LANES) for half in (0, VECTOR_LANES)]
    side_by_side = vector.ShuffleOp(one_behind_the_other, one_behind_the_other, order).result
    words = ir.VectorType.get([VECTOR_LANES], ir.IntegerType.get_signless(32))
    return vector.BitCastOp(words, side_by_side).result


def _call(intrinsic: str, *values: ir.Value, element: ir.Type) -> ir.Value:
    attributes = {
        "intrin": ir.StringAttr.get(intrinsic),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(values), 0]),
    }
    kind = ir.VectorType.get([len(values) * VECTOR_LANES], element)
    return ir.Operation.create("llvm.call_intrinsic", [kind], list(values), attributes).result
