"""tanh and erf of f32 as odd rational functions, as in Eigen."""

from __future__ import annotations

from pipeline.mlir import ir
from pipeline.passes.vector_math.vectors import Predicate, Vectors

#: Below here the cube of x is below the rounding of x, and a quotient would underflow on the way.
_LINEAR = 4e-4

#: From here on erf is nearer to 1 than half of a unit of its last place.
_ERF_IS_ONE = 3.8325


def tanh(v: Vectors, x: ir.Value) -> ir.Value:
    """Of degree 13 by 6; constant where tanh rounds to 1, x near 0."""
    clamped = v.clamp(x, -7.99881172180175781, 7.99881172180175781)
    square = v.multiply(clamped, clamped)
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
    return v.where_small(x, _LINEAR, x, v.divide(v.multiply(clamped, numerator), denominator))


def erf(v: Vectors, x: ir.Value) -> ir.Value:
    """Of degree 13 by 8; constant where erf rounds to 1, linear near 0."""
    square = v.multiply(x, x)
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
    value = v.divide(v.multiply(x, numerator), denominator)
    one = v.math("copysign", v.constant(1.0), x)
    value = v.where(v.test(Predicate.OGT, v.math("absf", x), _ERF_IS_ONE), one, value)
    return v.where_small(x, _LINEAR, v.multiply(x, 1.1283791670955126), value)
