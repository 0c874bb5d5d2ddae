"""ask-bits-for-nan: comparisons that hold for NaN, or ask for it, look at the bits of their operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern

_Predicate = arith.CmpFPredicate

#: The comparison of numbers that each comparison is where neither operand is NaN; with NaN it holds.
_OF_NUMBERS = {
    _Predicate.UEQ: _Predicate.OEQ,
    _Predicate.UGT: _Predicate.OGT,
    _Predicate.UGE: _Predicate.OGE,
    _Predicate.ULT: _Predicate.OLT,
    _Predicate.ULE: _Predicate.OLE,
    _Predicate.UNE: _Predicate.ONE,
}


@dataclass(frozen=True)
class AskBitsForNaN(PatternPass):
    """Replace unordered comparisons of f32 and f64 by ordered ones and tests of bits.

    naga (wgpu 0.32) makes ordered comparisons of all, so that NaN is no longer unequal to itself and relu(NaN) is 0.
    Remove when wgpu hands SPIR-V on to the driver.
    """

    name: ClassVar[str] = "ask-bits-for-nan"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    @pattern("arith.cmpf")
    def expand(self, comparison: ir.Operation) -> bool:
        """cmpf ugt %x, %y   ->   (cmpf ogt %x, %y) or (bits of %x are NaN's) or (bits of %y are NaN's)"""
        predicate = _Predicate(ir.IntegerAttr(comparison.attributes["predicate"]).value)
        left, right = comparison.operands
        with before(comparison):
            nans = [_is_nan(value) for value in dict.fromkeys((left, right)) if not _is_number(value)]
            if predicate == _Predicate.ORD:
                value = _not(_any(nans))
            elif predicate == _Predicate.UNO:
                value = _any(nans)
            elif predicate in _OF_NUMBERS:
                value = _any([arith.CmpFOp(_OF_NUMBERS[predicate], left, right).result, *nans])
            else:
                return False
            replace(comparison, [value])
        return True


def _is_number(value: ir.Value) -> bool:
    """Whether a value is a constant, and not NaN."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return False
    number = ir.FloatAttr(op.attributes["value"]).value
    return number == number


def _is_nan(value: ir.Value) -> ir.Value:
    """Whether a magnitude has more bits than infinity."""
    width = ir.FloatType(value.type).width
    bits, exponent = ir.IntegerType.get_signless(width), 0x7FF0 << 48 if width == 64 else 0x7F80 << 16
    magnitude = arith.AndIOp(
        arith.BitcastOp(bits, value).result, arith.ConstantOp(bits, (1 << (width - 1)) - 1).result
    ).result
    return arith.CmpIOp(arith.CmpIPredicate.sgt, magnitude, arith.ConstantOp(bits, exponent).result).result


def _any(conditions: list[ir.Value]) -> ir.Value:
    if not conditions:
        return arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result
    first, *rest = conditions
    for condition in rest:
        first = arith.OrIOp(first, condition).result
    return first


def _not(condition: ir.Value) -> ir.Value:
    return arith.XOrIOp(condition, arith.ConstantOp(condition.type, 1).result).result
