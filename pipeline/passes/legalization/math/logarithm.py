"""log, log2, log10, log1p, asinh, acosh, atanh."""

from __future__ import annotations

from pipeline.mlir import ir
from pipeline.passes.legalization.math import exp_log_f64
from pipeline.passes.legalization.math.builder import Predicate, Vectors

#: The coefficients of fdlibm's e_logf.c and e_log.c, highest first, and ln 2 in two parts.
_SERIES = {
    32: (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693),
    64: (
        1.479819860511658591e-01,
        1.531383769920937332e-01,
        1.818357216161805012e-01,
        2.222219843214978396e-01,
        2.857142874366239149e-01,
        3.999999999940941908e-01,
        6.666666666666735130e-01,
    ),
}
_LN2 = {
    32: (6.9313812256e-01, 9.0580006145e-06),
    64: (6.93147180369123816490e-01, 1.90821492927058770002e-10),
}


def log(v: Vectors, x: ir.Value) -> ir.Value:
    """k ln 2 + log(1 + f) for x = 2**k * (1 + f)."""
    k, f = _split(v, x)
    return _borders(v, x, _near_one(v, k, f))


def log2(v: Vectors, x: ir.Value) -> ir.Value:
    """k + log(1 + f) / ln 2, which is exact for powers of two."""
    k, f = _split(v, x)
    half, product = _series(v, f)
    return _borders(v, x, v.multiply_add(v.subtract(f, v.subtract(half, product)), 1.44269504088896340736, k))


#: 1 / ln 2 and 1 / ln 10 in two parts, of which the first has few bits, and log10(2) likewise; fdlibm's.
_BY_LN2 = 1.44269504072144627571e00, 1.67517131648865118353e-10
_BY_LN10 = 4.34294481878168880939e-01, 2.50829467116452752298e-11
_LOG10_2 = 3.01029995663611771306e-01, 3.69423907715893078616e-13


def log2_double(v: Vectors, x: ir.Value) -> ir.Value:
    """As in FreeBSD's e_log2.c: k + log(1 + f) / ln 2, in two parts."""
    k, f = _split(v, x)
    high, low = _product_in_parts(v, f, _BY_LN2)
    whole = v.add(k, high)
    return _borders(v, x, v.add(v.add(low, v.add(v.subtract(k, whole), high)), whole))


def log10_double(v: Vectors, x: ir.Value) -> ir.Value:
    """As in FreeBSD's e_log10.c: k log10(2) + log(1 + f) / ln 10, in two parts."""
    k, f = _split(v, x)
    high, low = _product_in_parts(v, f, _BY_LN10)
    start = v.multiply(k, _LOG10_2[0])
    whole = v.add(start, high)
    low = v.add(v.multiply_add(k, _LOG10_2[1], low), v.add(v.subtract(start, whole), high))
    return _borders(v, x, v.add(low, whole))


def _product_in_parts(v: Vectors, f: ir.Value, factor: tuple[float, float]) -> tuple[ir.Value, ir.Value]:
    """log(1 + f) times a factor in two parts, as the sum of two numbers."""
    half, product = _series(v, f)
    high = v.upper_half(v.subtract(f, half))
    low = v.add(v.subtract(v.subtract(f, high), half), product)
    rest = v.multiply_add(low, factor[0], v.multiply(v.add(low, high), factor[1]))
    return v.multiply(high, factor[0]), rest


def log10(v: Vectors, x: ir.Value) -> ir.Value:
    """By log in f64."""
    d = v.doubles
    return v.narrow(_borders(d, v.widen(x), d.multiply(exp_log_f64.log(d, v.widen(x)), 0.43429448190325182765)))


def _split(v: Vectors, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """k and f of positive numbers, denormal ones included."""
    lift = float(v.mantissa + 2)
    tiny = v.test(Predicate.OLT, x, 2.0 ** (1 - v.bias))
    k, f = v.split(v.where(tiny, v.multiply(x, 2.0**lift), x))
    return v.where(tiny, v.subtract(k, lift), k), f


def _near_one(v: Vectors, k: ir.Value, f: ir.Value, correction: ir.Value | None = None) -> ir.Value:
    """k ln 2 + log(1 + f) + correction."""
    high, low = _LN2[v.width]
    half, product = _series(v, f)
    rest = v.multiply(k, low)
    if correction is not None:
        rest = v.add(rest, correction)
    return v.subtract(v.multiply(k, high), v.subtract(v.subtract(half, v.add(product, rest)), f))


def _series(v: Vectors, f: ir.Value) -> tuple[ir.Value, ir.Value]:
    """h and p such that log(1 + f) = f - (h - p)."""
    s = v.divide(f, v.add(f, 2.0))
    square = v.multiply(s, s)
    half = v.multiply(v.multiply(f, f), 0.5)
    return half, v.multiply(s, v.multiply_add(square, v.polynomial(square, _SERIES[v.width]), half))


def _borders(v: Vectors, x: ir.Value, value: ir.Value) -> ir.Value:
    """The logarithm of 0 is -inf, of inf is inf, of NaN and negative numbers is NaN."""
    value = v.where(v.test(Predicate.OEQ, x, 0.0), float("-inf"), value)
    value = v.where(v.test(Predicate.OLT, x, float("inf")), value, x)
    return v.where(v.test(Predicate.OLT, x, 0.0), float("nan"), value)


def log1p(v: Vectors, x: ir.Value) -> ir.Value:
    """log of u = 1 + x, with what the rounding of u lost, divided by u, added to it."""
    if not v.exact:
        near = v.subtract(x, v.subtract(*_series(v, x)))
        is_near = v.test(Predicate.OLT, v.math("absf", v.subtract(x, 0.0625)), 0.34)
        return v.where(is_near, near, log(v, v.add(x, 1.0)))
    u = v.add(x, 1.0)
    part = v.subtract(u, 1.0)
    lost = v.add(v.subtract(1.0, v.subtract(u, part)), v.subtract(x, part))
    k, f = v.split(u)
    value = _borders(v, u, _near_one(v, k, f, v.divide(lost, u)))
    return v.where_small(x, 2.0 ** -(v.mantissa + 2), x, value)


def asinh(v: Vectors, x: ir.Value) -> ir.Value:
    """log(1 + t + t * t / (1 + sqrt(1 + t * t))) for t = |x|, in f64; x - x**3 / 6 near 0."""
    d, y = v.doubles, v.widen(x)
    magnitude = d.math("absf", y)
    square = d.multiply(y, y)
    root = d.math("sqrt", d.add(square, 1.0))
    grown = d.add(d.add(magnitude, d.divide(square, d.add(root, 1.0))), 1.0)
    value = exp_log_f64.log(d, d.where(d.test(Predicate.OEQ, magnitude, float("inf")), magnitude, grown))
    small = d.multiply_add(d.multiply(square, -1 / 6), magnitude, magnitude)
    return v.narrow(d.math("copysign", d.where_small(y, 2.0**-9, small, value), y))


def acosh(v: Vectors, x: ir.Value) -> ir.Value:
    """log(1 + t + sqrt(t * (x + 1))) for t = x - 1, in f64."""
    d, y = v.doubles, v.widen(x)
    less = d.subtract(y, 1.0)
    root = d.math("sqrt", d.multiply(less, d.add(y, 1.0)))
    value = exp_log_f64.log(d, d.add(d.add(less, root), 1.0))
    return v.narrow(d.where(d.test(Predicate.OLT, y, 1.0), float("nan"), value))


def atanh(v: Vectors, x: ir.Value) -> ir.Value:
    """log((1 + x) / (1 - x)) / 2 in f64; x + x**3 / 3 near 0."""
    d, y = v.doubles, v.widen(x)
    quotient = d.divide(d.add(y, 1.0), d.subtract(1.0, y))
    value = d.multiply(exp_log_f64.log(d, quotient), 0.5)
    small = d.multiply_add(d.multiply(d.multiply(y, y), 1 / 3), y, y)
    value = d.where(d.test(Predicate.OGT, d.math("absf", y), 1.0), float("nan"), value)
    return v.narrow(d.where_small(y, 2.0**-9, small, value))
