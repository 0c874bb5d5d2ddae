"""expand-vector-math: exp, tanh and erf of f32 vectors become arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.mlir import arith, ir, walk
from pipeline.passes.base import Pass
from pipeline.passes.rewriting import before, replace


@dataclass(frozen=True)
class ExpandVectorMath(Pass):
    """Replace math.exp, math.tanh and math.erf on vectors of f32 by polynomials.

    LLVM would call libm once for each element. The errors against the exact result: exp 2 ulp, denormal results
    included; tanh 5 ulp; erf 8 ulp; infinities and NaN as in libm. `tests/kernels/test_vector_math.py` checks that over
    the whole range. Other element types are left to libm, and scalars too
    unless `scalars` is set, which is for devices without a libm.
    """

    name: ClassVar[str] = "expand-vector-math"
    anchor: ClassVar[str] = "func.func"

    scalars: bool = field(default=False, metadata={"help": "expand on scalars too"})

    def run(self, op: ir.Operation) -> None:
        """Expands what it can of one function."""
        for name, expand in _EXPANSIONS.items():
            for call in walk(op, name):
                kind = call.results[0].type
                if not self._expands(kind):
                    continue
                with before(call):
                    value = expand(_Vectors(kind), call.operands[0])
                replace(call, [value])

    def _expands(self, kind: ir.Type) -> bool:
        if isinstance(kind, ir.VectorType):
            return isinstance(kind.element_type, ir.F32Type)
        return self.scalars and isinstance(kind, ir.F32Type)


class _Vectors:
    """Builds arithmetic on vectors of one type, or on scalars, at the insertion point."""

    def __init__(self, kind: ir.Type):
        word = ir.IntegerType.get_signless(32)
        self.kind = kind
        self.integers = ir.VectorType.get(kind.shape, word) if isinstance(kind, ir.VectorType) else word

    def constant(self, value: float) -> ir.Value:
        """`value`, rounded to f32, in every element."""
        return _constant(self.kind, ir.FloatAttr.get(ir.F32Type.get(), value))

    def integer(self, value: int) -> ir.Value:
        """`value` in every element."""
        return _constant(self.integers, ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value))

    def multiply_add(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """The sum a * b + c, rounded once."""
        return self.math("fma", a, b, c)

    def math(self, name: str, *operands: ir.Value) -> ir.Value:
        """An op of the math dialect that has a vector instruction."""
        return ir.Operation.create(f"math.{name}", results=[self.kind], operands=list(operands)).result

    def polynomial(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """The polynomial in `x`, by Horner's scheme; the coefficient of the highest power comes first."""
        value = self.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.multiply_add(value, x, self.constant(coefficient))
        return value

    def clamp(self, x: ir.Value, low: float, high: float) -> ir.Value:
        """`x`, but at least `low` and at most `high`; NaN stays NaN."""
        x = arith.MinimumFOp(x, self.constant(high)).result
        return arith.MaximumFOp(x, self.constant(low)).result

    def power_of_two(self, exponent: ir.Value) -> ir.Value:
        """2 ** exponent, for integers from -126 to 127."""
        biased = arith.AddIOp(exponent, self.integer(127)).result
        return arith.BitcastOp(self.kind, arith.ShLIOp(biased, self.integer(23)).result).result


def _constant(kind: ir.Type, number: ir.Attribute) -> ir.Value:
    splat = ir.DenseElementsAttr.get_splat(kind, number) if isinstance(kind, ir.VectorType) else number
    return arith.ConstantOp(kind, splat).result


def _exp(v: _Vectors, x: ir.Value) -> ir.Value:
    """2**n * e**r with n = round(x / ln 2), r = x - n ln 2; the polynomial is Cephes' expf.

    The power is applied in two halves, so that results may be denormal or overflow to infinity.
    """
    clamped = v.clamp(x, -104.0, 89.0)
    n = v.math("roundeven", arith.MulFOp(clamped, v.constant(1.44269504088896341)).result)
    r = v.multiply_add(n, v.constant(-0.693359375), clamped)
    r = v.multiply_add(n, v.constant(2.12194440e-4), r)
    tail = v.polynomial(
        r,
        (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
    )
    value = v.multiply_add(tail, arith.MulFOp(r, r).result, r)
    value = arith.AddFOp(value, v.constant(1.0)).result
    exponent = arith.FPToSIOp(v.integers, n).result
    half = arith.ShRSIOp(exponent, v.integer(1)).result
    value = arith.MulFOp(value, v.power_of_two(half)).result
    value = arith.MulFOp(value, v.power_of_two(arith.SubIOp(exponent, half).result)).result
    return _keep_nan(x, value)


def _keep_nan(x: ir.Value, value: ir.Value) -> ir.Value:
    """`x` where it is NaN, which integers on the way may have lost."""
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, x, x).result
    return arith.SelectOp(is_nan, x, value).result


def _where_small(v: _Vectors, x: ir.Value, small: ir.Value, value: ir.Value) -> ir.Value:
    """`small` where |x| < 4e-4: there the cube of x is below the rounding of x, and near 0 `value` would underflow."""
    is_small = arith.CmpFOp(arith.CmpFPredicate.OLT, v.math("absf", x), v.constant(4e-4)).result
    return arith.SelectOp(is_small, small, value).result


def _tanh(v: _Vectors, x: ir.Value) -> ir.Value:
    """An odd rational function of degree 13 by 6, as in Eigen; constant where tanh rounds to 1, x near 0."""
    clamped = v.clamp(x, -7.99881172180175781, 7.99881172180175781)
    square = arith.MulFOp(clamped, clamped).result
    numerator = v.polynomial(
        square,
        (
            -2.76076847742355e-16,
            2.00018790482477e-13,
            -8.60467152213735e-11,
            5.12229709037114e-08,
            1.48572235717979e-05,
            6.37261928875436e-04,
            4.89352455891786e-03,
        ),
    )
    denominator = v.polynomial(
        square, (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
    )
    value = arith.DivFOp(arith.MulFOp(clamped, numerator).result, denominator).result
    return _where_small(v, x, x, value)


def _erf(v: _Vectors, x: ir.Value) -> ir.Value:
    """An odd rational function of degree 13 by 8, as in Eigen; constant where erf rounds to 1, linear near 0."""
    clamped = v.clamp(x, -4.0, 4.0)
    square = arith.MulFOp(clamped, clamped).result
    numerator = v.polynomial(
        square,
        (
            -2.72614225801306e-10,
            2.77068142495902e-08,
            -2.10102402082508e-06,
            -5.69250639462346e-05,
            -7.34990630326855e-04,
            -2.95459980854025e-03,
            -1.60960333262415e-02,
        ),
    )
    denominator = v.polynomial(
        square,
        (
            -1.45660718464996e-05,
            -2.13374055278905e-04,
            -1.68282697438203e-03,
            -7.37332916720468e-03,
            -1.42647390514189e-02,
        ),
    )
    value = arith.DivFOp(arith.MulFOp(clamped, numerator).result, denominator).result
    return _where_small(v, x, arith.MulFOp(x, v.constant(1.1283791670955126)).result, value)


_EXPANSIONS = {"math.exp": _exp, "math.tanh": _tanh, "math.erf": _erf}
