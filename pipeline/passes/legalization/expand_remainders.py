"""expand-remainders: remainders are exact, whatever the quotient."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, ir, scf
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ExpandRemainders(PatternPass):
    """Replace remf of single f32 or f64 by a long division of their significands, as C's fmod has it.

    Drivers of GPUs take x - trunc(x / y) * y: that has few digits of a remainder where the quotient is large, and none
    where it is infinite. Remainders of integers, where asked for, become those of a division: MLIR's conversion to
    SPIR-V takes those of magnitudes, and the sign that it gives them is wrong for the least number.
    """

    name: ClassVar[str] = "expand-remainders"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    integers: bool = field(default=False, metadata={"help": "those of signed integers, too"})

    @pattern("arith.remsi")
    def divide(self, remainder: ir.Operation) -> bool:
        """remsi %x, %y   ->   subi %x, (muli (divsi %x, %y), %y)"""
        if not self.integers:
            return False
        x, y = remainder.operands
        with before(remainder):
            whole = arith.MulIOp(arith.DivSIOp(x, y).result, y).result
            replace(remainder, [arith.SubIOp(x, whole).result])
        return True

    @pattern("arith.remf")
    def expand(self, remainder: ir.Operation) -> bool:
        """remf %x, %y : f32   ->   a loop that takes some bits of the quotient at a time"""
        kind = remainder.results[0].type
        if not isinstance(kind, (ir.F32Type, ir.F64Type)):
            return False
        with before(remainder):
            replace(remainder, [_Words(kind).remainder(*remainder.operands)])
        return True


class _Words:
    """Floats of a type as words: a sign, an exponent with a bias, a significand without its first bit."""

    def __init__(self, kind: ir.Type):
        self.float = kind
        self.width = ir.FloatType(kind).width
        self.significand, self.bias = (23, 127) if self.width == 32 else (52, 1023)
        self.word = ir.IntegerType.get_signless(self.width)

    def remainder(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """x as a whole number of the last place of y, modulo the significand of y."""
        every = (1 << (self.width - 1)) - 1
        infinity = self.constant(((1 << (self.width - 1 - self.significand)) - 1) << self.significand)
        bits_of_x = arith.BitcastOp(self.word, x).result
        large = arith.AndIOp(bits_of_x, self.constant(every)).result
        small = arith.AndIOp(arith.BitcastOp(self.word, y).result, self.constant(every)).result
        is_less = self.test("ult", large, small)

        (digits, place), (divisor, last_place) = self.parts(large), self.parts(small)
        shift = arith.SelectOp(is_less, self.constant(0), arith.SubIOp(place, last_place).result).result
        rest = self.modulo(digits, shift, arith.MaxUIOp(divisor, self.constant(1)).result)
        sign = arith.AndIOp(bits_of_x, self.constant(~every)).result
        value = arith.BitcastOp(self.float, arith.OrIOp(self.joined(rest, last_place), sign).result).result

        is_none = arith.OrIOp(self.test("uge", large, infinity), self.test("ugt", small, infinity)).result
        is_none = arith.OrIOp(is_none, self.test("eq", small, self.constant(0))).result
        nan = arith.ConstantOp(self.float, ir.FloatAttr.get(self.float, float("nan"))).result
        return arith.SelectOp(is_none, nan, arith.SelectOp(is_less, x, value).result).result

    def parts(self, magnitude: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The significand of a number, and its exponent, which is 1 for numbers without a first bit, too."""
        exponent = arith.ShRUIOp(magnitude, self.constant(self.significand)).result
        digits = arith.AndIOp(magnitude, self.constant((1 << self.significand) - 1)).result
        is_small = self.test("eq", exponent, self.constant(0))
        first = arith.SelectOp(is_small, self.constant(0), self.constant(1 << self.significand)).result
        return arith.OrIOp(digits, first).result, arith.MaxUIOp(exponent, self.constant(1)).result

    def modulo(self, digits: ir.Value, shift: ir.Value, divisor: ir.Value) -> ir.Value:
        """digits * 2^shift modulo a divisor, by as many bits at a time as a word has to spare."""
        index, free = ir.IndexType.get(), self.width - 1 - self.significand
        last = arith.IndexCastOp(index, arith.MaxUIOp(shift, self.constant(1)).result).result
        first, step = (arith.ConstantOp(index, number).result for number in (0, free))
        loop = scf.ForOp(first, last, step, [digits])
        with ir.InsertionPoint(loop.body):
            done = arith.IndexCastOp(self.word, loop.induction_variable).result
            count = arith.MinUIOp(arith.SubIOp(shift, done).result, self.constant(free)).result
            scaled = arith.ShLIOp(loop.inner_iter_args[0], count).result
            scf.YieldOp([arith.RemUIOp(scaled, divisor).result])
        return loop.results[0]

    def joined(self, digits: ir.Value, exponent: ir.Value) -> ir.Value:
        """The magnitude of digits with an exponent: shifted until they have a first bit, or the exponent is 1."""
        as_float = arith.BitcastOp(self.word, arith.SIToFPOp(self.float, digits).result).result
        length = arith.ShRUIOp(as_float, self.constant(self.significand)).result
        missing = arith.SubIOp(self.constant(self.bias + self.significand), length).result
        shift = arith.MinUIOp(missing, arith.SubIOp(exponent, self.constant(1)).result).result
        above_one = arith.SubIOp(arith.SubIOp(exponent, shift).result, self.constant(1)).result
        high = arith.ShLIOp(above_one, self.constant(self.significand)).result
        magnitude = arith.AddIOp(arith.ShLIOp(digits, shift).result, high).result
        return arith.SelectOp(self.test("eq", digits, self.constant(0)), digits, magnitude).result

    def constant(self, number: int) -> ir.Value:
        """A word."""
        return arith.ConstantOp(self.word, number).result

    def test(self, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """A comparison of words."""
        return arith.CmpIOp(arith.CmpIPredicate[predicate], a, b).result
