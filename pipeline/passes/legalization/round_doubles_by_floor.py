"""round-doubles-by-floor: the even one of two nearest integers is found by arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class RoundDoublesByFloor(PatternPass):
    """Replace roundeven of f64 by floor, which takes one more where the rest says so.

    Mesa 22.3 on processors with AVX2 rounds ties of f64 toward 0, and leaves numbers above 2 ** 24 as they are,
    whatever their fraction. Remove when the oldest Mesa that is supported does not.
    """

    name: ClassVar[str] = "round-doubles-by-floor"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    @pattern("math.roundeven")
    def expand(self, rounding: ir.Operation) -> bool:
        """roundeven %x   ->   copysign (floor %x + (1 if %x - floor %x rounds up else 0)), %x"""
        from pipeline.passes.legalization.math.builder import Predicate, Vectors

        (x,) = rounding.operands
        if not isinstance(x.type, ir.F64Type):
            return False
        double = Vectors(x.type)
        with before(rounding):
            below = double.math("floor", x)
            rest = double.subtract(x, below)
            half = double.multiply(below, 0.5)
            is_odd = double.test(Predicate.ONE, half, double.math("floor", half))
            is_tie = arith.AndIOp(double.test(Predicate.OEQ, rest, 0.5), is_odd).result
            goes_up = arith.OrIOp(double.test(Predicate.OGT, rest, 0.5), is_tie).result
            nearest = double.where(goes_up, double.add(below, 1.0), below)
            replace(rounding, [double.math("copysign", nearest, x)])
        return True
