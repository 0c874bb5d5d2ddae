"""keep-nan: NaN is found by its bits where a driver would not find it; sums that cancel are not taken apart."""

from __future__ import annotations

import functools
import math
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
class KeepNaN(PatternPass):
    """Replace unordered comparisons of f32 and f64, x - x and x * 0 by what looks at bits, and part (x + y) - x.

    naga (wgpu 0.32) makes ordered comparisons of all, so that NaN is no longer unequal to itself and relu(NaN) is 0;
    Mesa takes x - x and x * 0 for 0, which they are not for NaN and infinity, and (x + y) - x for y, which is what is
    left of it after rounding. Remove when wgpu hands SPIR-V on to the driver, with SignedZeroInfNanPreserve and
    NoContraction.
    """

    name: ClassVar[str] = "keep-nan"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    @pattern("arith.cmpf")
    def compare(self, comparison: ir.Operation) -> bool:
        """cmpf ugt %x, %y   ->   (cmpf ogt %x, %y) or (bits of %x are NaN's) or (bits of %y are NaN's)"""
        predicate = _Predicate(ir.IntegerAttr(comparison.attributes["predicate"]).value)
        if predicate not in (_Predicate.ORD, _Predicate.UNO, *_OF_NUMBERS):
            return False
        left, right = comparison.operands
        with before(comparison):
            nans = [_is_nan(value) for value in dict.fromkeys((left, right)) if not _is_number(value)]
            if predicate == _Predicate.ORD:
                value = _not(_any(nans))
            elif predicate == _Predicate.UNO:
                value = _any(nans)
            else:
                value = _any([arith.CmpFOp(_OF_NUMBERS[predicate], left, right).result, *nans])
            replace(comparison, [value])
        return True

    @pattern("arith.subf")
    def subtract(self, difference: ir.Operation) -> bool:
        """subf %x, %x   ->   select (%x is finite), 0, NaN"""
        x, other = difference.operands
        if x != other:
            return False
        with before(difference):
            replace(difference, [_where_finite(x, arith.ConstantOp(x.type, 0.0).result)])
        return True

    @pattern("arith.addf", "arith.subf")
    def part(self, total: ir.Operation) -> bool:
        """subf (addf %x, %y), %x   ->   subf (select (%sum is NaN), NaN, %sum), %x, with %sum = addf %x, %y"""
        for place, (inner, other) in enumerate((list(total.operands), list(total.operands)[::-1])):
            if _cancels(inner, other):
                with before(total):
                    total.operands[place] = arith.SelectOp(_is_nan(inner), _nan_of(inner), inner).result
                return True
        return False

    @pattern("arith.mulf")
    def multiply(self, product: ir.Operation) -> bool:
        """mulf %x, 0   ->   select (%x is finite), (copysign 0, %x), NaN"""
        x, factor = product.operands
        zero = _constant(factor)
        if zero != 0:
            return False
        with before(product):
            kind = product.results[0].type
            signed = ir.Operation.create("math.copysign", results=[kind], operands=[factor, x]).result
            if math.copysign(1, zero) < 0:
                signed = arith.NegFOp(signed).result
            replace(product, [_where_finite(x, signed)])
        return True


def _cancels(inner: ir.Value, other: ir.Value) -> bool:
    """Whether one sum is inside of another one, and both have a term in common, or a constant each."""
    terms, others = _terms(inner), _terms(other)
    shared = terms & others or all(any(map(_is_number, values)) for values in (terms, others))
    return bool(shared) and terms != {inner}


def _terms(value: ir.Value) -> set[ir.Value]:
    """Those of a sum; other values are one."""
    op = defining_op(value)
    return set(op.operands) if op is not None and op.name in ("arith.addf", "arith.subf") else {value}


def _nan_of(total: ir.Value) -> ir.Value:
    """What a sum is where it is NaN; not a constant where a number is added, as drivers would add the next to both."""
    op = defining_op(total)
    assert op is not None
    left, right = op.operands
    for x, added in ((left, right), (right, left)):
        if math.isfinite(_constant(added) or math.nan):
            return x
    return arith.ConstantOp(total.type, ir.FloatAttr.get(total.type, math.nan)).result


def _constant(value: ir.Value) -> float | None:
    op = defining_op(value)
    return ir.FloatAttr(op.attributes["value"]).value if op is not None and op.name == "arith.constant" else None


def _is_number(value: ir.Value) -> bool:
    """Whether a value is a constant, and not NaN."""
    number = _constant(value)
    return number is not None and number == number


def _is_nan(value: ir.Value) -> ir.Value:
    return _compare_magnitude(value, arith.CmpIPredicate.sgt)


def _where_finite(x: ir.Value, value: ir.Value) -> ir.Value:
    nan = arith.ConstantOp(x.type, ir.FloatAttr.get(x.type, math.nan)).result
    return arith.SelectOp(_compare_magnitude(x, arith.CmpIPredicate.slt), value, nan).result


def _compare_magnitude(value: ir.Value, predicate: arith.CmpIPredicate) -> ir.Value:
    """How the bits of a magnitude compare with those of infinity."""
    width = ir.FloatType(value.type).width
    word, infinity = ir.IntegerType.get_signless(width), 0x7FF0 << 48 if width == 64 else 0x7F80 << 16
    bits = arith.BitcastOp(word, value).result
    magnitude = arith.AndIOp(bits, arith.ConstantOp(word, (1 << (width - 1)) - 1).result).result
    return arith.CmpIOp(predicate, magnitude, arith.ConstantOp(word, infinity).result).result


def _any(conditions: list[ir.Value]) -> ir.Value:
    if not conditions:
        return arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result
    return functools.reduce(lambda a, b: arith.OrIOp(a, b).result, conditions)


def _not(condition: ir.Value) -> ir.Value:
    return arith.XOrIOp(condition, arith.ConstantOp(condition.type, 1).result).result
