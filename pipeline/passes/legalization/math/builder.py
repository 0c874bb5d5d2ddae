"""Builds arithmetic on vectors of f32 or f64, or on single numbers, at the insertion point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.ir.intrinsics import call_intrinsic
from pipeline.mlir import arith, ir

Predicate = arith.CmpFPredicate

#: The bits of sqrt(1/2), or a little less.
_ROOT_HALF = {32: 0x3F3504F3, 64: 0x3FE6A09E << 32}

#: The intrinsics for x * 2 ** floor(n), with a mask and a rounding mode.
_SCALEF = {
    "vector<16xf32>": "llvm.x86.avx512.mask.scalef.ps.512",
    "vector<8xf64>": "llvm.x86.avx512.mask.scalef.pd.512",
}


#: The intrinsics that take the numbers of one register at the places that the last bits of another one's integers say.
_LOOKUP = {"vector<16xf32>": "llvm.x86.avx512.permvar.sf.512"}


@dataclass(frozen=True)
class Vectors:
    """Vectors of one type, or numbers.

    Attributes:
        kind: the type; that of the elements alone for numbers.
        fma: whether the processor multiplies and adds with one rounding; without, it is done with two.
        exact: whether the code generator leaves (x + c) - c as it is; drivers of Vulkan make x of it.
        scalef: whether the processor has AVX-512's instruction for x * 2 ** n.
        tables: whether the processor has AVX-512's instruction that looks numbers up in a register.
    """

    kind: ir.Type
    fma: bool = True
    exact: bool = True
    scalef: bool = False
    tables: bool = False

    @property
    def element(self) -> ir.Type:
        """The type of an element."""
        return self.kind.element_type if isinstance(self.kind, ir.VectorType) else self.kind

    @property
    def width(self) -> int:
        """The bits of an element."""
        return self.element.width

    @property
    def mantissa(self) -> int:
        """The bits of an element's fraction."""
        return 23 if self.width == 32 else 52

    @property
    def bias(self) -> int:
        """What the exponent of 1 is stored as."""
        return 127 if self.width == 32 else 1023

    @property
    def integers(self) -> ir.Type:
        """The type of integers of the same width."""
        return self._like(ir.IntegerType.get_signless(self.width))

    @property
    def doubles(self) -> Vectors:
        """As many elements of f64."""
        return replace(self, kind=self._like(ir.F64Type.get()))

    def constant(self, value: float) -> ir.Value:
        """`value`, rounded to the type, in every element."""
        return _splat(self.kind, ir.FloatAttr.get(self.element, value))

    def integer(self, value: int) -> ir.Value:
        """`value` in every element."""
        return _splat(self.integers, ir.IntegerAttr.get(ir.IntegerType.get_signless(self.width), value))

    def add(self, a: ir.Value, b: ir.Value | float) -> ir.Value:
        """The sum a + b."""
        return arith.AddFOp(a, self._value(b)).result

    def subtract(self, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
        """The difference a - b."""
        return arith.SubFOp(self._value(a), self._value(b)).result

    def multiply(self, a: ir.Value, b: ir.Value | float) -> ir.Value:
        """The product a * b."""
        return arith.MulFOp(a, self._value(b)).result

    def divide(self, a: ir.Value | float, b: ir.Value) -> ir.Value:
        """The quotient a / b."""
        return arith.DivFOp(self._value(a), b).result

    def multiply_add(self, a: ir.Value, b: ir.Value | float, c: ir.Value | float) -> ir.Value:
        """The sum a * b + c, rounded once where the processor can."""
        if not self.fma:
            return self.add(self.multiply(a, b), c)
        return self.math("fma", a, self._value(b), self._value(c))

    def math(self, name: str, *operands: ir.Value) -> ir.Value:
        """An op of the math dialect that has a vector instruction."""
        return ir.Operation.create(f"math.{name}", results=[self.kind], operands=list(operands)).result

    def polynomial(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """The polynomial in `x`, by Horner's scheme; the coefficient of the highest power comes first."""
        value = self.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.multiply_add(value, x, coefficient)
        return value

    def test(self, predicate: arith.CmpFPredicate, a: ir.Value, b: ir.Value | float) -> ir.Value:
        """The mask of the elements for which the comparison holds."""
        return arith.CmpFOp(predicate, a, self._value(b)).result

    def where(self, mask: ir.Value, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
        """`a` where the mask holds, else `b`."""
        return arith.SelectOp(mask, self._value(a), self._value(b)).result

    def least(self, a: float, b: ir.Value) -> ir.Value:
        """The smaller one, which is `b` where that is NaN: one instruction on x86, unlike arith.minimumf."""
        return self.where(arith.CmpFOp(Predicate.OLT, self.constant(a), b).result, a, b)

    def greatest(self, a: float, b: ir.Value) -> ir.Value:
        """The larger one, which is `b` where that is NaN."""
        return self.where(arith.CmpFOp(Predicate.OGT, self.constant(a), b).result, a, b)

    def clamp(self, x: ir.Value, low: float, high: float) -> ir.Value:
        """`x`, but at least `low` and at most `high`; NaN stays NaN."""
        return self.greatest(low, self.least(high, x))

    def zero_below(self, least: float, x: ir.Value, function: Callable[[ir.Value], ir.Value]) -> ir.Value:
        """The function of `x`, but 0 where that is less than `least`, and the function is nearer to 0 than any number.

        Processors take a hundred times as long to round such a result to 0 as to compute it: it is not computed.
        """
        vanishes = self.test(Predicate.OLT, x, least)
        return self.where(vanishes, 0.0, function(self.where(vanishes, 0.0, x)))

    def round(self, x: ir.Value, factor: float = 1.0) -> tuple[ir.Value, ir.Value]:
        """The integers nearest to x * factor, as floats and as integers, where they are below 2 ** (mantissa bits - 2).

        Adding 1.5 * 2 ** mantissa leaves no bits for a fraction, and the integer in the last ones.
        """
        if not self.exact:
            nearest = self.math("roundeven", x if factor == 1.0 else self.multiply(x, factor))
            return nearest, arith.FPToSIOp(self.integers, nearest).result
        shift = 1.5 * 2.0**self.mantissa
        shifted = self.add(x, shift) if factor == 1.0 else self.multiply_add(x, factor, shift)
        integer = arith.SubIOp(self.bits(shifted), self.bits(self.constant(shift))).result
        return self.subtract(shifted, shift), integer

    def bits(self, x: ir.Value) -> ir.Value:
        """The floats as integers of the same bits."""
        return arith.BitcastOp(self.integers, x).result

    def upper_half(self, x: ir.Value) -> ir.Value:
        """The f64 without the lower half of their bits, so that products of two are exact."""
        return self.from_bits(arith.AndIOp(self.bits(x), self.integer(-(1 << 32))).result)

    def from_bits(self, x: ir.Value) -> ir.Value:
        """The integers as floats of the same bits."""
        return arith.BitcastOp(self.kind, x).result

    def power_of_two(self, exponent: ir.Value) -> ir.Value:
        """2 ** exponent, for integers whose power is a normal number."""
        biased = arith.AddIOp(exponent, self.integer(self.bias)).result
        return self.from_bits(arith.ShLIOp(biased, self.integer(self.mantissa)).result)

    def scale(self, x: ir.Value, exponent: ir.Value, integer: ir.Value) -> ir.Value:
        """x * 2 ** exponent, which may be denormal or overflow to infinity; the exponent as floats and as integers.

        In two halves where that is not an instruction.
        """
        if self.has_scalef:
            return self.scale_by_floor(x, exponent)
        first, second = self.halves(integer)
        return self.multiply(self.multiply(x, self.power_of_two(first)), self.power_of_two(second))

    def scale_within_range(self, x: ir.Value, exponent: ir.Value, integer: ir.Value) -> ir.Value:
        """As `scale`, where both the power and the product are normal numbers."""
        if self.has_scalef:
            return self.scale_by_floor(x, exponent)
        return self.multiply(x, self.power_of_two(integer))

    @property
    def has_scalef(self) -> bool:
        """Whether vectors of this type have the instruction for x * 2 ** n."""
        return self.scalef and str(self.kind) in _SCALEF

    def scale_by_floor(self, x: ir.Value, exponent: ir.Value) -> ir.Value:
        """x * 2 ** floor(exponent), which may be denormal or overflow to infinity; see `has_scalef`."""
        mask, rounding = ir.IntegerType.get_signless(max(8, self.kind.shape[0])), ir.IntegerType.get_signless(32)
        every = arith.ConstantOp(mask, ir.IntegerAttr.get(mask, -1)).result
        current = arith.ConstantOp(rounding, ir.IntegerAttr.get(rounding, 4)).result
        return call_intrinsic(_SCALEF[str(self.kind)], self.kind, x, exponent, x, every, current)

    @property
    def has_lookup(self) -> bool:
        """Whether vectors of this type are looked up in tables of as many numbers."""
        return self.tables and str(self.kind) in _LOOKUP

    def lookup(self, table: Sequence[float], places: ir.Value) -> ir.Value:
        """The numbers of a table at places, of which only the last bits count; see `has_lookup`."""
        numbers = ir.DenseElementsAttr.get(np.array(table, np.float32), type=self.kind)
        known = arith.ConstantOp(self.kind, numbers).result
        return call_intrinsic(_LOOKUP[str(self.kind)], self.kind, known, places)

    def halves(self, integer: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Two integers of about the same size whose sum is `integer`, for small ones.

        Shifts of negative numbers that keep the sign are dear in 64 bits, so that happens in the positive.
        """
        if self.width == 32:
            first = arith.ShRSIOp(integer, self.integer(1)).result
            return first, arith.SubIOp(integer, first).result
        most = 4 * self.bias
        positive = arith.AddIOp(integer, self.integer(most)).result
        half = arith.ShRUIOp(positive, self.integer(1)).result
        first = arith.SubIOp(half, self.integer(most // 2)).result
        return first, arith.SubIOp(integer, first).result

    def split(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """k and f, as floats, of normal positive x = 2**k * (1 + f), with 1 + f between sqrt(1/2) and sqrt(2)."""
        bits_of_one = self.bias << self.mantissa
        moved = arith.AddIOp(self.bits(x), self.integer(bits_of_one - _ROOT_HALF[self.width])).result
        biased = arith.ShRUIOp(moved, self.integer(self.mantissa)).result
        k = arith.SubIOp(biased, self.integer(self.bias)).result
        power = arith.ShLIOp(k, self.integer(self.mantissa)).result
        f = self.subtract(self.from_bits(arith.SubIOp(self.bits(x), power).result), 1.0)
        if not self.exact:
            return arith.SIToFPOp(self.kind, k).result, f
        whole = 2.0**self.mantissa  # the last bits of which are an integer
        magic = self.from_bits(arith.OrIOp(biased, self.bits(self.constant(whole))).result)
        return self.subtract(magic, whole + self.bias), f

    def where_small(self, x: ir.Value, below: float, small: ir.Value, value: ir.Value) -> ir.Value:
        """`small` where |x| < below, else `value`."""
        return self.where(self.test(Predicate.OLT, self.math("absf", x), below), small, value)

    def widen(self, x: ir.Value) -> ir.Value:
        """f32 as f64."""
        return arith.ExtFOp(self.doubles.kind, x).result

    def narrow(self, x: ir.Value) -> ir.Value:
        """f64 rounded to the type."""
        return arith.TruncFOp(self.kind, x).result

    def _value(self, value: ir.Value | float) -> ir.Value:
        return self.constant(value) if isinstance(value, (int, float)) else value

    def _like(self, element: ir.Type) -> ir.Type:
        """The type with as many elements of another type."""
        return ir.VectorType.get(self.kind.shape, element) if isinstance(self.kind, ir.VectorType) else element


def _splat(kind: ir.Type, number: ir.Attribute) -> ir.Value:
    value = ir.DenseElementsAttr.get_splat(kind, number) if isinstance(kind, ir.VectorType) else number
    return arith.ConstantOp(kind, value).result
