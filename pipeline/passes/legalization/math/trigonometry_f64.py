"""sin, cos, tan of f64, as in fdlibm: an angle is the sum of two numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

from pipeline.mlir import arith, ir
from pipeline.passes.legalization.math.builder import Vectors
from pipeline.passes.legalization.math.trigonometry import by_calls_where_large, has_bit, negate

#: π/2 in four parts (fdlibm's e_rem_pio2.c). Products of the first three, of 33 bits, with integers of 20 are exact.
_PARTS = (
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624871116645580e-21,
    8.47842766036889956997e-32,
)

#: Up to here the quarter turns of an angle are an integer of 20 bits.
_LARGEST = 2.0**20

#: (sin x - x) / x**3 in x**2, without its first term, and that (fdlibm's k_sin.c).
_SINE = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
    8.33333333332248946124e-03,
)
_SINE_FIRST = -1.66666666666666324348e-01

#: (cos x - 1 + x**2 / 2) / x**4 in x**2 (fdlibm's k_cos.c).
_COSINE = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
)

#: An angle within π/4: the number nearest to it and what is left.
Angle = tuple[ir.Value, ir.Value]


def sin(v: Vectors, x: ir.Value) -> ir.Value:
    """The sine; x itself near 0."""

    def small(angle: Angle, quadrant: ir.Value) -> ir.Value:
        value = v.where(has_bit(v, quadrant, 1), _cosine(v, angle), _sine(v, angle))
        return negate(v, has_bit(v, quadrant, 2), value)

    return v.where_small(x, 2.0**-27, x, _periodic(v, "math.sin", x, small))


def cos(v: Vectors, x: ir.Value) -> ir.Value:
    """The cosine."""

    def small(angle: Angle, quadrant: ir.Value) -> ir.Value:
        value = v.where(has_bit(v, quadrant, 1), _sine(v, angle), _cosine(v, angle))
        return negate(v, has_bit(v, arith.AddIOp(quadrant, v.integer(1)).result, 2), value)

    return _periodic(v, "math.cos", x, small)


def tan(v: Vectors, x: ir.Value) -> ir.Value:
    """The tangent: sine by cosine, or minus cosine by sine; x itself near 0."""

    def small(angle: Angle, quadrant: ir.Value) -> ir.Value:
        sine, cosine, odd = _sine(v, angle), _cosine(v, angle), has_bit(v, quadrant, 1)
        return v.divide(v.where(odd, v.subtract(-0.0, cosine), sine), v.where(odd, sine, cosine))

    return v.where_small(x, 2.0**-27, x, _periodic(v, "math.tan", x, small))


def _periodic(v: Vectors, name: str, x: ir.Value, small: Callable[[Angle, ir.Value], ir.Value]) -> ir.Value:
    """`small` of the angle within π/4 and the number of quarter turns; of large angles by a call for each element.

    The parts of π/2 are subtracted from the largest to the smallest, and what each difference rounds away is kept: an
    angle next to a multiple of π/2 loses all its own bits, and has those of the parts instead.
    """
    n, quadrant = v.round(v.multiply(x, 2 / math.pi))
    first = v.multiply_add(n, -_PARTS[0], x)
    second, lost = _difference(v, first, v.multiply(n, _PARTS[1]))
    third, lost_again = _difference(v, second, v.multiply(n, _PARTS[2]))
    rest = v.multiply_add(n, -_PARTS[3], v.add(lost, lost_again))
    high = v.add(third, rest)
    angle = high, v.add(v.subtract(third, high), rest)
    return by_calls_where_large(v, name, x, _LARGEST, small(angle, quadrant))


def _difference(v: Vectors, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """a - b, rounded, and what that leaves out (Knuth's two-sum)."""
    value = v.subtract(a, b)
    of_b = v.subtract(a, value)
    of_a = v.add(value, of_b)
    return value, v.add(v.subtract(a, of_a), v.subtract(of_b, b))


def _sine(v: Vectors, angle: Angle) -> ir.Value:
    """The sine of an angle within π/4."""
    x, rest = angle
    square = v.multiply(x, x)
    cube = v.multiply(square, x)
    tail = v.subtract(v.multiply(rest, 0.5), v.multiply(cube, v.polynomial(square, _SINE)))
    correction = v.subtract(v.multiply(square, tail), rest)
    return v.subtract(x, v.subtract(correction, v.multiply(cube, _SINE_FIRST)))


def _cosine(v: Vectors, angle: Angle) -> ir.Value:
    """The cosine of an angle within π/4."""
    x, rest = angle
    square = v.multiply(x, x)
    series = v.multiply(square, v.polynomial(square, _COSINE))
    half = v.multiply(square, 0.5)
    rough = v.subtract(1.0, half)
    correction = v.subtract(v.multiply(square, series), v.multiply(x, rest))
    return v.add(rough, v.add(v.subtract(v.subtract(1.0, rough), half), correction))
