"""Rounding floats by one instruction of AVX-512: as they are converted to integers, and to bf16."""

from __future__ import annotations

from pipeline.ir.intrinsics import call_intrinsic
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
    return call_intrinsic("llvm.lrint", _vector(ir.IntegerType.get_signless(32)), value)


def is_rounding_to_bf16(op: ir.Operation, lanes: int) -> bool:
    """Whether AVX512_BF16 has an instruction for an op of a body, in vectors of that many."""
    if op.name != "arith.truncf" or lanes != VECTOR_LANES:
        return False
    return isinstance(op.results[0].type, ir.BF16Type) and isinstance(op.operands[0].type, ir.F32Type)


def nearest_bf16(value: ir.Value) -> ir.Value:
    """The bits of the bf16 nearest to a vector of f32. Denormal ones are 0, as in dot products of bf16."""
    nearest = call_intrinsic("llvm.x86.avx512bf16.cvtneps2bf16.512", _vector(ir.BF16Type.get()), value)
    return arith.BitcastOp(_vector(ir.IntegerType.get_signless(16)), nearest).result


def pairs_of_nearest_bf16(first: ir.Value, second: ir.Value) -> ir.Value:
    """Words of the bf16 nearest to two vectors of f32, those of the first in the lowest bits. Denormal ones are 0."""
    both = ir.VectorType.get([2 * VECTOR_LANES], ir.BF16Type.get())
    one_behind_the_other = call_intrinsic("llvm.x86.avx512bf16.cvtne2ps2bf16.512", both, second, first)
    order = [lane + half for lane in range(VECTOR_LANES) for half in (0, VECTOR_LANES)]
    side_by_side = vector.ShuffleOp(one_behind_the_other, one_behind_the_other, order).result
    return vector.BitCastOp(_vector(ir.IntegerType.get_signless(32)), side_by_side).result


def _vector(element: ir.Type) -> ir.VectorType:
    return ir.VectorType.get([VECTOR_LANES], element)
