"""How small elements lie in memory, and how vectors of them are held.

A bool lies in memory as a byte, a 16-bit float as an integer of 16 bits: LLVM would load a vector of bools as bits, and
has no vectors of bf16. In a vector a bool is an i1, an f16 an f16, and a bf16 its bits.
"""

from __future__ import annotations

from pipeline.mlir import arith, ir

_STORED_BITS = {"i1": 8, "f16": 16, "bf16": 16}


def stored(kind: ir.Type) -> ir.Type:
    """The type by which an element is loaded and stored."""
    bits = _STORED_BITS.get(str(kind))
    return kind if bits is None else ir.IntegerType.get_signless(bits)


def held(kind: ir.Type) -> ir.Type:
    """The type of an element in a vector."""
    return ir.IntegerType.get_signless(16) if isinstance(kind, ir.BF16Type) else kind


def stored_view(buffer: ir.Value) -> ir.Value:
    """A buffer as one of stored elements: the same memory, which lowering to LLVM sees to."""
    kind = ir.MemRefType(buffer.type)
    element = stored(kind.element_type)
    if element == kind.element_type:
        return buffer
    view = ir.MemRefType.get(kind.shape, element, kind.layout, kind.memory_space)
    return ir.Operation.create("builtin.unrealized_conversion_cast", results=[view], operands=[buffer]).result


def after_load(value: ir.Value, kind: ir.Type) -> ir.Value:
    """What was loaded, a number or a vector, as it is held; `kind` is the type of the element."""
    held_as = _like(value.type, held(kind))
    if isinstance(kind, ir.IntegerType) and kind.width == 1:
        return arith.TruncIOp(held_as, value).result
    return arith.BitcastOp(held_as, value).result if isinstance(kind, ir.F16Type) else value


def before_store(value: ir.Value, kind: ir.Type) -> ir.Value:
    """What is held, as it is stored."""
    stored_as = _like(value.type, stored(kind))
    if isinstance(kind, ir.IntegerType) and kind.width == 1:
        return arith.ExtUIOp(stored_as, value).result
    return arith.BitcastOp(stored_as, value).result if isinstance(kind, ir.F16Type) else value


def number(value: ir.Value) -> ir.Value:
    """A number that is no part of a vector yet, as it is held."""
    if not isinstance(value.type, ir.BF16Type):
        return value
    return arith.BitcastOp(held(value.type), value).result


def convert(op: ir.Operation, operand: ir.Value) -> ir.Value | None:
    """The vector form of an op that converts from or to bf16; None for other ops."""
    source, result = op.operands[0].type, op.results[0].type
    if op.name == "arith.extf" and isinstance(source, ir.BF16Type):
        return _extend(operand)
    if op.name == "arith.truncf" and isinstance(result, ir.BF16Type):
        return _round(operand)
    if op.name == "arith.bitcast" and any(isinstance(kind, ir.BF16Type) for kind in (source, result)):
        kind = _like(operand.type, held(result))
        return operand if operand.type == kind else arith.BitcastOp(kind, operand).result  # of f16
    return None


def _extend(bits: ir.Value) -> ir.Value:
    """The bits of bf16 as f32: they are its upper half."""
    wide = arith.ExtUIOp(_like(bits.type, ir.IntegerType.get_signless(32)), bits).result
    return arith.BitcastOp(_like(bits.type, ir.F32Type.get()), arith.ShLIOp(wide, _splat(wide.type, 16)).result).result


def _round(value: ir.Value) -> ir.Value:
    """The bits of the bf16 nearest to an f32, of the even one in the middle of two; of one NaN for all."""
    integers = _like(value.type, ir.IntegerType.get_signless(32))
    bits = arith.BitcastOp(integers, value).result
    upper = arith.ShRUIOp(bits, _splat(integers, 16)).result
    odd = arith.AndIOp(upper, _splat(integers, 1)).result
    up = arith.AddIOp(arith.AddIOp(bits, _splat(integers, 0x7FFF)).result, odd).result
    nearest = arith.ShRUIOp(up, _splat(integers, 16)).result
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result
    chosen = arith.SelectOp(is_nan, _splat(integers, 0x7FC0), nearest).result
    return arith.TruncIOp(_like(value.type, ir.IntegerType.get_signless(16)), chosen).result


def _like(kind: ir.Type, element: ir.Type) -> ir.Type:
    """`element`, or a vector of it as long as `kind`."""
    return ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element


def _splat(kind: ir.VectorType, value: int) -> ir.Value:
    number = ir.IntegerAttr.get(kind.element_type, value)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, number)).result
