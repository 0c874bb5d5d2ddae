"""clamp-before-rounding: what is quantized is clamped as a float, then rounded as it is converted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.ir.linalg_op import structured
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, defining_op, ir, math
from pipeline.passmanager.patterns import PatternPass, pattern

_CONVERSIONS = ("arith.fptosi", "arith.fptoui")

#: Sums of integers up to this one, and of a rounded float, are exact in f32.
_EXACT = 1 << 22

#: Predicates by which a select keeps the lesser, or the larger of two numbers; what is no number is kept.
_LESS = (arith.CmpFPredicate.OLT, arith.CmpFPredicate.ULT, arith.CmpFPredicate.OLE, arith.CmpFPredicate.ULE)
_GREATER = (arith.CmpFPredicate.OGT, arith.CmpFPredicate.UGT, arith.CmpFPredicate.OGE, arith.CmpFPredicate.UGE)


@dataclass(frozen=True)
class ClampBeforeRounding(PatternPass):
    """Round a float to an integer of a few bits where it is converted, between bounds that are integers.

    clamp(round(x) + z, low, high)   ->   int(round(clamp(x, low - z, high - z))) + z

    Both give the same integer. Processors round as they convert, add small integers as cheaply as floats, and need no
    sum where the zero point is 0. A bound that a model has put on x before, by a relu or a clamp, goes if the other one
    comes to the same after rounding.
    """

    name: ClassVar[str] = "clamp-before-rounding"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def clamp(self, generic: ir.Operation) -> bool:
        """clamp(round(x) + z, low, high)   ->   int(round(clamp(x, low - z, high - z))) + z"""
        view = structured(generic)
        if view is None:
            return False
        found = [
            (op, quantized) for op in view.body_ops if op.name in _CONVERSIONS and (quantized := _read(op)) is not None
        ]
        for op, quantized in found:
            self.passed(generic, "rounds floats between bounds as it converts them")
            with before(op):
                replace(op, [quantized.build(op.results[0].type)])
        return bool(found)


@dataclass(frozen=True)
class _Quantized:
    """clamp(round(x) + zero, low, high), with numbers that are integers."""

    x: ir.Value
    zero: int
    low: int
    high: int

    def build(self, kind: ir.Type) -> ir.Value:
        """The integer, of a type, at the insertion point."""
        f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)
        low, high = (arith.ConstantOp(f32, float(bound - self.zero)).result for bound in (self.low, self.high))
        value = _without_bounds(self.x, self.low - self.zero, self.high - self.zero)
        value = arith.SelectOp(arith.CmpFOp(arith.CmpFPredicate.OLT, value, low).result, low, value).result
        value = arith.SelectOp(arith.CmpFOp(arith.CmpFPredicate.OGT, value, high).result, high, value).result
        whole = arith.FPToSIOp(i32, math.RoundEvenOp(value).result).result
        if self.zero:
            whole = arith.AddIOp(whole, arith.ConstantOp(i32, self.zero).result).result
        return arith.TruncIOp(kind, whole).result


def _read(conversion: ir.Operation) -> _Quantized | None:
    """What is converted to integers of a few bits, as a rounded float between bounds; None for something else."""
    kind = conversion.results[0].type
    value = conversion.operands[0]
    if not isinstance(value.type, ir.F32Type) or ir.IntegerType(kind).width >= 32:
        return None
    low = high = None
    while (bound := _bound(value)) is not None:
        value, number, is_low = bound
        low, high = (number if is_low else low), (high if is_low else number)
        if low is not None and high is not None:
            break
    zero, op = 0.0, defining_op(value)
    if op is not None and op.name == "arith.addf":
        numbers = [_number(operand) for operand in op.operands]
        if numbers[1] is None:
            return None
        zero, value = numbers[1], op.operands[0]
        op = defining_op(value)
    if op is None or op.name != "math.roundeven" or low is None or high is None or low > high:
        return None
    if not all(number.is_integer() and abs(number) < _EXACT for number in (zero, low, high)):
        return None
    return _Quantized(op.operands[0], int(zero), int(low), int(high))


def _bound(value: ir.Value) -> tuple[ir.Value, float, bool] | None:
    """x, a number, and whether it is a lower bound, of a value that is the larger or the lesser of the two.

    select(x < low, low, x), select(x > low, x, low), and the like for an upper bound
    """
    select = defining_op(value)
    compare = defining_op(select.operands[0]) if select is not None and select.name == "arith.select" else None
    if select is None or compare is None or compare.name != "arith.cmpf":
        return None
    predicate = arith.CmpFPredicate(ir.IntegerAttr(compare.attributes["predicate"]).value)
    x, limit = compare.operands
    number = _number(limit)
    chosen = list(select.operands)[1:]
    if number is None or predicate not in (*_LESS, *_GREATER):
        return None
    if chosen == [limit, x] and predicate in (_LESS[0], _LESS[2], _GREATER[0], _GREATER[2]):
        return x, number, predicate in _LESS
    if chosen == [x, limit] and predicate in (_LESS[1], _LESS[3], _GREATER[1], _GREATER[3]):
        return x, number, predicate in _GREATER
    return None


def _without_bounds(x: ir.Value, low: int, high: int) -> ir.Value:
    """The factor of a product by a positive number without bounds of its own that come to `low` and `high`, or less.

    clamp(v, 0, 6) * c   ->   v * c, if round(0 * c) <= low and round(6 * c) >= high
    """
    product = defining_op(x)
    if product is None or product.name != "arith.mulf":
        return x
    factor = _number(product.operands[1])
    if factor is None or not 0 < factor < float("inf"):
        return x
    value, limits = product.operands[0], list[tuple[float, bool]]()
    while (bound := _bound(value)) is not None:
        inside, number, is_low = bound
        reached = float(np.rint(np.float32(number) * np.float32(factor)))
        if not (reached <= low if is_low else reached >= high):
            break
        limits.append((number, is_low))
        value = inside
    if not limits or not _are_apart(limits):
        return x
    return arith.MulFOp(value, product.operands[1]).result


def _are_apart(limits: Sequence[tuple[float, bool]]) -> bool:
    """Whether lower bounds are below upper ones: no number is outside of both then."""
    lower, upper = ([number for number, is_low in limits if is_low == wanted] for wanted in (True, False))
    return not lower or not upper or max(lower) <= min(upper)


def _number(value: ir.Value) -> float | None:
    """The number that a constant is; None for another value."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], ir.FloatAttr):
        return None
    return ir.FloatAttr(op.attributes["value"]).value
