"""asin, acos, atan and atan2 of f64, by the approximations of fdlibm."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.mlir import arith, ir
from pipeline.passes.legalization.math.builder import Predicate, Vectors

#: A quarter turn and half a turn, pi / 2 and pi, as sums of two numbers.
_QUARTER = 1.57079632679489655800e00, 6.12323399573676603587e-17
_HALF = 3.1415926535897931160e00, 1.2246467991473531772e-16

#: (asin(x) - x) / x**3 as a quotient in x**2 up to 1/2; coefficients are those of the highest power first.
_ASIN = (
    (
        3.47933107596021167570e-05,
        7.91534994289814532176e-04,
        -4.00555345006794114027e-02,
        2.01212532134862925881e-01,
        -3.25565818622400915405e-01,
        1.66666666666666657415e-01,
    ),
    (
        7.70381505559019352791e-02,
        -6.88283971605453293030e-01,
        2.02094576023350569471e00,
        -2.40339491173441421878e00,
        1.0,
    ),
)

#: (1 - atan(x) / x) / x**2 in x**2 up to 7/16: the even powers times one more x**2, and the odd ones.
_ATAN = (
    (
        1.62858201153657823623e-02,
        4.97687799461593236017e-02,
        6.66107313738753120669e-02,
        9.09088713343650656196e-02,
        1.42857142725034663711e-01,
        3.33333333333329318027e-01,
    ),
    (
        -3.65315727442169155270e-02,
        -5.83357013379057348645e-02,
        -7.69187620504482999495e-02,
        -1.11111104054623557880e-01,
        -1.99999999998764832476e-01,
    ),
)

#: From which |x| on atan(x) = atan(c) + atan((x - c) / (1 + c x)), with c and atan(c) in two parts; 1 / 0 is infinite.
_AROUND = (
    (7 / 16, 0.5, 4.63647609000806093515e-01, 2.26987774529616870924e-17),
    (11 / 16, 1.0, 7.85398163397448278999e-01, 3.06161699786838301793e-17),
    (19 / 16, 1.5, 9.82793723247329054082e-01, 1.39033110312309984516e-17),
)
_FAR = 39 / 16


def asin(v: Vectors, x: ir.Value) -> ir.Value:
    """x + x * q(x**2); from 1/2 on pi / 2 - 2 asin(sqrt((1 - |x|) / 2))."""
    magnitude = v.math("absf", x)
    is_far = v.test(Predicate.OGE, magnitude, 0.5)
    square = v.where(is_far, _half_of_rest(v, magnitude), v.multiply(x, x))
    series = _asin_series(v, square)
    near = v.multiply_add(x, series, x)
    root, upper, rest = _root(v, square)
    less = v.subtract(v.multiply(v.add(root, root), series), v.subtract(_QUARTER[1], v.add(rest, rest)))
    far = v.subtract(_QUARTER[0] / 2, v.subtract(less, v.subtract(_QUARTER[0] / 2, v.add(upper, upper))))
    return v.where(is_far, v.math("copysign", far, x), near)


def acos(v: Vectors, x: ir.Value) -> ir.Value:
    """pi / 2 - asin(x); from 1/2 on 2 asin(sqrt((1 - |x|) / 2)), which is taken from pi where x is negative."""
    magnitude = v.math("absf", x)
    is_far = v.test(Predicate.OGE, magnitude, 0.5)
    square = v.where(is_far, _half_of_rest(v, magnitude), v.multiply(x, x))
    series = _asin_series(v, square)
    near = v.subtract(_QUARTER[0], v.subtract(x, v.subtract(_QUARTER[1], v.multiply(x, series))))
    root, upper, rest = _root(v, square)
    above = v.add(upper, v.multiply_add(series, root, rest))
    below = v.add(root, v.subtract(v.multiply(series, root), _QUARTER[1]))
    below = v.subtract(_HALF[0], v.add(below, below))
    far = v.where(v.test(Predicate.OLT, x, 0.0), below, v.add(above, above))
    return v.where(is_far, far, near)


def _half_of_rest(v: Vectors, magnitude: ir.Value) -> ir.Value:
    return v.multiply(v.subtract(1.0, magnitude), 0.5)


def _asin_series(v: Vectors, square: ir.Value) -> ir.Value:
    above, below = (v.polynomial(square, coefficients) for coefficients in _ASIN)
    return v.multiply(square, v.divide(above, below))


def _root(v: Vectors, square: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The square root, its upper half, and what that lacks."""
    root = v.math("sqrt", square)
    upper = v.upper_half(root)
    both = v.add(root, upper)
    rest = v.divide(v.subtract(square, v.multiply(upper, upper)), both)
    return root, upper, v.where(v.test(Predicate.OEQ, both, 0.0), 0.0, rest)


def atan(v: Vectors, x: ir.Value) -> ir.Value:
    """t - t**3 * p(t**2) for |x| or a smaller t that differs by a known angle."""
    magnitude = v.math("absf", x)
    above, below = magnitude, v.constant(1.0)
    high, low = v.constant(0.0), v.constant(0.0)
    for border, center, *angle in _AROUND:
        mask = v.test(Predicate.OGE, magnitude, border)
        above = v.where(mask, v.subtract(magnitude, center), above)
        below = v.where(mask, v.multiply_add(magnitude, center, 1.0), below)
        high, low = v.where(mask, angle[0], high), v.where(mask, angle[1], low)
    mask = v.test(Predicate.OGE, magnitude, _FAR)
    above, below = v.where(mask, -1.0, above), v.where(mask, magnitude, below)
    high, low = v.where(mask, _QUARTER[0], high), v.where(mask, _QUARTER[1], low)
    t = v.divide(above, below)
    square = v.multiply(t, t)
    series = _atan_series(v, square, v.multiply(square, square), *_ATAN)
    value = v.subtract(high, v.subtract(v.subtract(v.multiply(t, series), low), t))
    return v.math("copysign", value, x)


def _atan_series(
    v: Vectors, square: ir.Value, fourth: ir.Value, even: Sequence[float], odd: Sequence[float]
) -> ir.Value:
    even_part = v.multiply(square, v.polynomial(fourth, even))
    return v.multiply_add(fourth, v.polynomial(fourth, odd), even_part)


def atan2(v: Vectors, y: ir.Value, x: ir.Value) -> ir.Value:
    """atan(|y / x|), taken from pi where x is negative, with the sign of y; what C says of 0 and of infinities."""
    infinity = float("inf")
    ys, xs = v.math("absf", y), v.math("absf", x)
    quotient = v.divide(ys, xs)
    both_infinite = arith.AndIOp(v.test(Predicate.OEQ, ys, infinity), v.test(Predicate.OEQ, xs, infinity)).result
    quotient = v.where(both_infinite, 1.0, quotient)
    both_zero = arith.AndIOp(v.test(Predicate.OEQ, ys, 0.0), v.test(Predicate.OEQ, xs, 0.0)).result
    quotient = v.where(both_zero, 0.0, quotient)
    angle = atan(v, quotient)
    is_left = v.test(Predicate.OLT, v.math("copysign", v.constant(1.0), x), 0.0)
    left = v.subtract(_HALF[0], v.subtract(angle, _HALF[1]))
    value = v.math("copysign", v.where(is_left, left, angle), y)
    return v.where(v.test(Predicate.UNO, x, y), float("nan"), value)
