"""expm1 and the hyperbolic functions of f64, with their inverses."""

from __future__ import annotations

from pipeline.mlir import arith, ir
from pipeline.passes.legalization.math import logarithm
from pipeline.passes.legalization.math.builder import Predicate, Vectors
from pipeline.passes.legalization.math.exponential import reduced_double

#: The coefficients of fdlibm's s_expm1.c, highest power first.
_EXPM1 = (
    -2.01099218183624371326e-07,
    4.00821782732936239552e-06,
    -7.93650757867487942473e-05,
    1.58730158725481460165e-03,
    -3.33333333333331316428e-02,
    1.0,
)

#: From here on the hyperbolic tangent is 1.
_TANH_IS_ONE = 20.0

#: From here on asinh(x) and acosh(x) are log(2 x).
_ROOT_IS_X = 2.0**28


def expm1(v: Vectors, x: ir.Value) -> ir.Value:
    """See `_expm1`; x itself near 0."""
    return v.where_small(x, 2.0**-54, x, _expm1(v, x))


def tanh(v: Vectors, x: ir.Value) -> ir.Value:
    """y / (y + 2) with y = expm1(2 |x|); 1 - 2 / (y + 2) where that is nearer to 1."""
    magnitude = v.math("absf", x)
    clamped = v.least(_TANH_IS_ONE, magnitude)
    y = _expm1(v, v.add(clamped, clamped))
    is_near_one = v.test(Predicate.OGT, magnitude, 0.55)
    quotient = v.divide(v.where(is_near_one, -2.0, y), v.add(y, 2.0))
    value = v.where(is_near_one, v.add(quotient, 1.0), quotient)
    return v.where_small(x, 2.0**-28, x, v.math("copysign", value, x))


def sinh(v: Vectors, x: ir.Value) -> ir.Value:
    """h + h / (2 h + 1) with h = expm1(|x|) / 2."""
    h = _expm1(v, v.math("absf", x), halved=True)
    value = v.add(h, v.divide(h, v.add(v.add(h, h), 1.0)))
    value = v.where(v.test(Predicate.OEQ, h, float("inf")), h, value)
    return v.where_small(x, 2.0**-28, x, v.math("copysign", value, x))


def cosh(v: Vectors, x: ir.Value) -> ir.Value:
    """p + 1 / (4 p) with p = (expm1(|x|) + 1) / 2."""
    power = v.add(_expm1(v, v.math("absf", x), halved=True), 0.5)
    return v.add(power, v.divide(0.25, power))


def _expm1(v: Vectors, x: ir.Value, halved: bool = False) -> ir.Value:
    """2**n * (r - e) + 2**n - 1 with n = round(x / ln 2), r = x - n ln 2; half of it, if so, which is infinite later.

    As in fdlibm's s_expm1.c; in two halves of n, since 2**n may be infinite where the result is not.
    """
    _, power, high, low = reduced_double(v, v.clamp(x, -746.0, 712.0))
    r = v.subtract(high, low)
    lost = v.subtract(v.subtract(high, r), low)
    half = v.multiply(r, 0.5)
    square = v.multiply(r, half)
    series = v.polynomial(square, _EXPM1)
    t = v.subtract(3.0, v.multiply(series, half))
    quotient = v.divide(v.subtract(series, t), v.subtract(6.0, v.multiply(r, t)))
    rest = v.multiply(square, quotient)
    rest = v.subtract(v.subtract(v.multiply(r, v.subtract(rest, lost)), lost), square)
    first, second = v.halves(power)
    scale = v.power_of_two(first)
    unit = v.power_of_two(arith.SubIOp(v.integer(0), second).result)
    whole = v.multiply_add(r, scale, v.subtract(scale, unit))
    value = v.subtract(whole, v.multiply(rest, scale))
    if halved:
        second = arith.SubIOp(second, v.integer(1)).result
    return v.multiply(value, v.power_of_two(second))


def asinh(v: Vectors, x: ir.Value) -> ir.Value:
    """log1p(t + t * t / (1 + sqrt(1 + t * t))) for t = |x|; log(t) + ln 2 for large ones."""
    magnitude = v.math("absf", x)
    t = v.least(_ROOT_IS_X, magnitude)
    square = v.multiply(t, t)
    root = v.math("sqrt", v.add(square, 1.0))
    near = logarithm.log1p(v, v.add(t, v.divide(square, v.add(root, 1.0))))
    far = v.add(logarithm.log(v, magnitude), 0.69314718055994530942)
    value = v.where(v.test(Predicate.OGT, magnitude, _ROOT_IS_X), far, near)
    return v.where_small(x, 2.0**-28, x, v.math("copysign", value, x))


def acosh(v: Vectors, x: ir.Value) -> ir.Value:
    """log1p(t + sqrt(t * t + 2 t)) for t = x - 1; log(x) + ln 2 for large ones."""
    t = v.subtract(v.least(_ROOT_IS_X, x), 1.0)
    root = v.math("sqrt", v.multiply_add(t, t, v.add(t, t)))
    near = logarithm.log1p(v, v.add(t, root))
    far = v.add(logarithm.log(v, x), 0.69314718055994530942)
    value = v.where(v.test(Predicate.OGT, x, _ROOT_IS_X), far, near)
    return v.where(v.test(Predicate.OLT, x, 1.0), float("nan"), value)


def atanh(v: Vectors, x: ir.Value) -> ir.Value:
    """log1p(2 t / (1 - t)) / 2 for t = |x|."""
    magnitude = v.math("absf", x)
    quotient = v.divide(v.add(magnitude, magnitude), v.subtract(1.0, magnitude))
    value = v.multiply(logarithm.log1p(v, quotient), 0.5)
    value = v.where(v.test(Predicate.OGT, magnitude, 1.0), float("nan"), value)
    return v.where_small(x, 2.0**-28, x, v.math("copysign", value, x))
