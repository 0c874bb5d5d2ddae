"""widen-narrow-types: 8- and 16-bit numbers of a dispatch become 32-bit ones with the same values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import DISPATCH
from pipeline.ir.rewriting import before, replace, update_signature
from pipeline.mlir import arith, ir, memref, refusal, run_pipeline, walk
from pipeline.passmanager.base import Pass

#: Have operands, and so a result, that are not negative.
_UNSIGNED = {"arith.divui", "arith.remui", "arith.shrui", "arith.maxui", "arith.minui", "arith.ceildivui"}
_UNSIGNED_COMPARISONS = range(6, 10)


@dataclass(frozen=True)
class WidenNarrowTypes(Pass):
    """Compute and store i8, i16, f16 and bf16 in 32 bits, rounded or wrapped after each op as the narrow type is.

    Vulkan has none of these everywhere, and threads that write neighbouring bytes of a word would disturb each other.
    Memory holds a word for each element: small integers sign-extended, i1 as 0 or 1, 16-bit floats as f32. On buffers
    of one dimension, as flatten-buffers leaves them.
    """

    name: ClassVar[str] = "widen-narrow-types"

    def run(self, op: ir.Operation) -> None:
        """Widens every dispatch of the module."""
        for function in walk(op, "func.func"):
            if DISPATCH in function.attributes:
                with function.location:
                    _widen(function)


def _widen(function: ir.Operation) -> None:
    run_pipeline(function, "func.func(arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32})")
    found = _ops_with_types(function)
    for op, _, _ in found:
        _widen_values(op)
    for argument in function.regions[0].blocks[0].arguments:
        _widen_value(argument)
    for op, operands, results in found:
        if _is_narrow(op, operands, results):
            with before(op):
                _widen_op(op, operands, results)
    update_signature(function)


#: An op, and the types of its operands and results as they were.
_Typed = tuple[ir.Operation, list[ir.Type], list[ir.Type]]


def _ops_with_types(function: ir.Operation) -> list[_Typed]:
    """The ops inside of a function, outer before inner."""
    found: list[_Typed] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        found.append((op, [value.type for value in op.operands], [value.type for value in op.results]))
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def _is_narrow(op: ir.Operation, operands: list[ir.Type], results: list[ir.Type]) -> bool:
    return op.name in _MEMORY or any(_wide(_element(kind)) is not None for kind in (*operands, *results))


_MEMORY = ("memref.load", "memref.store")


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.MemRefType) else kind


def _wide(kind: ir.Type) -> ir.Type | None:
    """The type that stands for a narrow one in registers; None for others."""
    if isinstance(kind, (ir.F16Type, ir.BF16Type)):
        return ir.F32Type.get()
    return ir.IntegerType.get_signless(32) if _small_integer(kind) else None


def _small_integer(kind: ir.Type) -> int | None:
    """The width of an integer of 2 to 31 bits."""
    return kind.width if isinstance(kind, ir.IntegerType) and 1 < kind.width < 32 else None


def _widen_values(op: ir.Operation) -> None:
    for result in op.results:
        _widen_value(result)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                _widen_value(argument)


def _widen_value(value: ir.Value) -> None:
    kind = value.type
    if isinstance(kind, ir.MemRefType):
        element = ir.IntegerType.get_signless(32) if str(kind.element_type) == "i1" else _wide(kind.element_type)
        if element is not None:
            value.set_type(ir.MemRefType.get(kind.shape, element, kind.layout, kind.memory_space))
    elif _wide(kind) is not None:
        value.set_type(_wide(kind))


def _widen_op(op: ir.Operation, operands: list[ir.Type], results: list[ir.Type]) -> None:
    """Gives an op, whose values are wide already, the meaning that it has on narrow ones."""
    if op.name in _MEMORY:
        _access(op, operands, results)
    elif op.name.startswith("scf.") or op.name in ("arith.select", "arith.cmpf", "memref.alloc"):
        return
    elif op.name == "arith.constant":
        _constant(op, results[0])
    elif op.name == "arith.cmpi":
        _compare(op, operands[0])
    elif op.name == "arith.bitcast":
        _bitcast(op, operands[0], results[0])
    elif op.name in _CASTS:
        _cast(op, operands[0], results[0])
    elif results and _small_integer(results[0]) and op.name.startswith(("arith.", "math.")):
        _arithmetic(op, results[0])
    else:
        raise refusal(op, f"{op.name} on {operands[0]} is not supported on this device; compile it for the target cpu")


def _access(op: ir.Operation, operands: list[ir.Type], results: list[ir.Type]) -> None:
    """An i1 is a word in memory and a truth value in registers."""
    kind = operands[0] if op.name == "memref.load" else operands[1]
    if str(_element(kind)) != "i1":
        return
    if op.name == "memref.store":
        op.operands[0] = arith.ExtUIOp(_word(0).type, op.operands[0]).result
        return
    loaded = memref.LoadOp(op.operands[0], list(op.operands)[1:]).result
    replace(op, [arith.CmpIOp(arith.CmpIPredicate.ne, loaded, _word(0)).result])


def _constant(op: ir.Operation, kind: ir.Type) -> None:
    value = op.attributes["value"]
    if _small_integer(kind):
        op.attributes["value"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), ir.IntegerAttr(value).value)
    else:
        op.attributes["value"] = ir.FloatAttr.get(ir.F32Type.get(), ir.FloatAttr(value).value)


def _compare(op: ir.Operation, kind: ir.Type) -> None:
    if ir.IntegerAttr(op.attributes["predicate"]).value in _UNSIGNED_COMPARISONS:
        for number in range(2):
            op.operands[number] = _unsigned(op.operands[number], kind)


def _bitcast(op: ir.Operation, source: ir.Type, result: ir.Type) -> None:
    """Between i16 and floats of 16 bits; nothing makes others."""
    (value,) = op.operands
    if isinstance(source, ir.BF16Type):
        bits = arith.BitcastOp(_word(0).type, value).result
        replace(op, [arith.ShRSIOp(bits, _word(16)).result])
    elif isinstance(result, ir.BF16Type):
        bits = arith.ShLIOp(value, _word(16)).result
        replace(op, [arith.BitcastOp(ir.F32Type.get(), bits).result])
    elif isinstance(source, ir.F16Type):
        replace(op, [_bits_of_f16(value)])
    elif isinstance(result, ir.F16Type):
        replace(op, [_f16_of_bits(value)])
    else:
        raise refusal(
            op, f"a bit cast from {source} to {result} is not supported on this device; compile it for the target cpu"
        )


#: What the exponents of f32 are more than those of f16.
_BIASES_APART = 127 - 15


def _bits_of_f16(value: ir.Value) -> ir.Value:
    """The bits of an f32 as an f16, which has it exactly, sign-extended; of NaN the first ones."""
    bits = arith.BitcastOp(_word(0).type, value).result
    size = arith.AndIOp(bits, _word(0x7FFFFFFF)).result
    sign = arith.AndIOp(arith.ShRSIOp(bits, _word(16)).result, _word(-0x8000)).result
    shifted = arith.ShRUIOp(size, _word(13)).result
    normal = arith.SubIOp(shifted, _word(_BIASES_APART << 10)).result
    steps = arith.ConstantOp(ir.F32Type.get(), 2.0**24).result
    scaled = arith.MulFOp(arith.BitcastOp(steps.type, size).result, steps).result
    tiny = arith.FPToSIOp(_word(0).type, scaled).result
    special = arith.OrIOp(arith.AndIOp(shifted, _word(0x3FF)).result, _word(0x7C00)).result
    found = _where_less(size, (_BIASES_APART + 1) << 23, tiny, normal)
    return arith.OrIOp(_where_less(size, 0xFF << 23, found, special), sign).result


def _f16_of_bits(bits: ir.Value) -> ir.Value:
    """The f32 that an f16 of these bits is."""
    kind = ir.F32Type.get()
    size = arith.AndIOp(bits, _word(0x7FFF)).result
    sign = arith.ShLIOp(arith.ShRSIOp(bits, _word(15)).result, _word(31)).result
    shifted = arith.ShLIOp(size, _word(13)).result
    normal = arith.AddIOp(shifted, _word(_BIASES_APART << 23)).result
    step = arith.ConstantOp(kind, 2.0**-24).result
    tiny = arith.BitcastOp(normal.type, arith.MulFOp(arith.SIToFPOp(kind, size).result, step).result).result
    special = arith.OrIOp(shifted, _word(0xFF << 23)).result
    found = _where_less(size, 0x400, tiny, normal)
    return arith.BitcastOp(kind, arith.OrIOp(_where_less(size, 0x7C00, found, special), sign).result).result


def _where_less(value: ir.Value, bound: int, below: ir.Value, otherwise: ir.Value) -> ir.Value:
    is_less = arith.CmpIOp(arith.CmpIPredicate.slt, value, _word(bound)).result
    return arith.SelectOp(is_less, below, otherwise).result


def _word(number: int) -> ir.Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(32), number).result


_CASTS = {
    *("arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci", "arith.sitofp", "arith.uitofp"),
    *("arith.fptosi", "arith.fptoui", "arith.index_cast", "arith.index_castui"),
}


def _cast(op: ir.Operation, source: ir.Type, result: ir.Type) -> None:
    value = op.operands[0]
    if op.name in ("arith.extui", "arith.uitofp", "arith.index_castui") and _small_integer(source):
        value = _unsigned(value, source)
    wanted = op.results[0].type
    if value.type == wanted:
        replace(op, [_normal(value, result) if op.name in ("arith.truncf", "arith.trunci") else value])
        return
    if isinstance(result, (ir.F16Type, ir.BF16Type)) and op.name == "arith.truncf":
        raise refusal(op, f"truncf from {source} to {result} goes through f32")
    copy = op.clone()
    copy.operands[0] = value
    replace(op, [_normal(copy.results[0], result)])


def _arithmetic(op: ir.Operation, kind: ir.Type) -> None:
    if op.name.startswith("math."):
        raise refusal(op, f"{op.name} on {kind} is not supported on this device; compile it for the target cpu")
    if op.name in _UNSIGNED:
        for number, operand in enumerate(list(op.operands)):
            op.operands[number] = _unsigned(operand, kind)
    replace(op, [_normal(op.clone().results[0], kind)])


def _unsigned(value: ir.Value, kind: ir.Type) -> ir.Value:
    width = _small_integer(kind)
    if width is None:
        return value
    return arith.AndIOp(value, arith.ConstantOp(value.type, (1 << width) - 1).result).result


def _normal(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A 32-bit value as the narrow type has it: wrapped and sign-extended, or rounded to nearest even."""
    width = _small_integer(kind)
    if width is not None:
        shift = arith.ConstantOp(value.type, 32 - width).result
        return arith.ShRSIOp(arith.ShLIOp(value, shift).result, shift).result
    if isinstance(kind, ir.BF16Type):
        return _round_bits(value, 16)
    return _round_f16(value) if isinstance(kind, ir.F16Type) else value


def _round_bits(value: ir.Value, dropped: int) -> ir.Value:
    """An f32 with its last `dropped` mantissa bits rounded away; NaN stays NaN."""
    bits = arith.BitcastOp(_word(0).type, value).result
    odd = arith.AndIOp(arith.ShRUIOp(bits, _word(dropped)).result, _word(1)).result
    up = arith.AddIOp(arith.AddIOp(bits, _word((1 << (dropped - 1)) - 1)).result, odd).result
    cut = arith.AndIOp(up, _word(-(1 << dropped))).result
    rounded = arith.BitcastOp(ir.F32Type.get(), cut).result
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result
    return arith.SelectOp(is_nan, value, rounded).result


def _round_f16(value: ir.Value) -> ir.Value:
    """An f32 rounded to f16: 11 bits, denormals below 2**-14 in steps of 2**-24, infinity from 65520 on."""
    kind = ir.F32Type.get()
    size = ir.Operation.create("math.absf", results=[kind], operands=[value]).result
    step, steps = (arith.ConstantOp(kind, number).result for number in (2.0**-24, 2.0**24))
    scaled = arith.MulFOp(size, steps).result
    tiny = ir.Operation.create("math.roundeven", results=[kind], operands=[scaled]).result
    tiny = arith.MulFOp(tiny, step).result
    normal = _round_bits(size, 13)
    least = arith.ConstantOp(kind, 2.0**-14).result
    result = arith.SelectOp(arith.CmpFOp(arith.CmpFPredicate.OLT, size, least).result, tiny, normal).result
    large = arith.CmpFOp(arith.CmpFPredicate.OGE, size, arith.ConstantOp(kind, 65520.0).result).result
    infinity = arith.ConstantOp(kind, float("inf")).result
    result = arith.SelectOp(large, infinity, result).result
    return ir.Operation.create("math.copysign", results=[kind], operands=[result, value]).result
