"""exp and log in f64 for functions of f32: nothing is denormal, nothing overflows, 35 bits are enough."""

from __future__ import annotations

from pipeline.mlir import ir
from pipeline.passes.legalization.math.builder import Predicate, Vectors

# Both by Chebyshev interpolation; relative errors below 2 ** -35.
_EXP = (
    2.485969536057397e-05,
    0.00019899390165128988,
    0.0013888853907925791,
    0.008333298344046721,
    0.041666666719302366,
    0.16666666719312348,
    0.5,
)
_LOG = (
    0.19365960028338638,
    0.22191214691716146,
    0.2857175799900532,
    0.39999998772743156,
    0.6666666666743286,
)


def exp(d: Vectors, x: ir.Value) -> ir.Value:
    """As in `exponentials.exp`; 0 and infinity, once rounded to f32, are right."""
    clamped = d.clamp(x, -110.0, 100.0)
    n, power = d.round(clamped, 1.44269504088896341)
    r = d.multiply_add(n, -0.69314718055994530942, clamped)
    tail = d.polynomial(r, _EXP)
    value = d.multiply_add(d.multiply_add(tail, r, 1.0), r, 1.0)
    return d.multiply(value, d.power_of_two(power))


def log(d: Vectors, x: ir.Value) -> ir.Value:
    """As in `logarithms.log`, for numbers that are positive or NaN, with -inf of 0 and inf of inf."""
    k, f = d.split(x)
    s = d.divide(f, d.add(f, 2.0))
    square = d.multiply(s, s)
    series = d.multiply_add(d.multiply(square, s), d.polynomial(square, _LOG), d.add(s, s))
    value = d.multiply_add(k, 0.69314718055994530942, series)
    value = d.where(d.test(Predicate.OEQ, x, 0.0), float("-inf"), value)
    return d.where(d.test(Predicate.OLT, x, float("inf")), value, x)
