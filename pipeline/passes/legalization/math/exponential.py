"""exp, exp2, expm1, sinh, cosh, pow."""

from __future__ import annotations

from pipeline.mlir import arith, defining_op, ir
from pipeline.passes.legalization.math import exp_log_f64
from pipeline.passes.legalization.math.builder import Predicate, Vectors
from pipeline.passes.legalization.math.exp_tables import exp_by_tables

_LOG2_E = 1.44269504088896341

#: (e**r - 1 - r) / r**2 for |r| up to ln(2) / 2, from Cephes' expf.
_TAIL = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)


def exp(v: Vectors, x: ir.Value) -> ir.Value:
    """2**n * e**r with n = round(x / ln 2), r = x - n ln 2."""
    return (_exp_single if v.width == 32 else _exp_double)(v, x)


def _exp_single(v: Vectors, x: ir.Value) -> ir.Value:
    if v.has_lookup and v.has_scalef:
        return exp_by_tables(v, x)

    def within(x: ir.Value) -> ir.Value:
        clamped = v.least(89.0, x)
        n, power = v.round(clamped, _LOG2_E)
        return v.scale(_power_of_e(v, _remainder(v, clamped, n)), n, power)

    return v.zero_below(-104.0, x, within)


def exp_within_range(v: Vectors, x: ir.Value) -> ir.Value:
    """e**x of f32, where that is neither denormal nor infinite."""
    n, power = v.round(x, _LOG2_E)
    return v.scale_within_range(_power_of_e(v, _remainder(v, x, n)), n, power)


def _remainder(v: Vectors, x: ir.Value, n: ir.Value) -> ir.Value:
    """The remainder x - n ln 2."""
    high = v.multiply_add(n, -0.693359375, x)
    if not v.exact:
        high = v.greatest(-1.0, high)  # it always is: this keeps the two products apart
    return v.multiply_add(n, 2.12194440e-4, high)


def _power_of_e(v: Vectors, r: ir.Value) -> ir.Value:
    """e**r = 1 + r * (1 + r * p)."""
    return v.multiply_add(v.multiply_add(v.polynomial(r, _TAIL), r, 1.0), r, 1.0)


def _exp_double(v: Vectors, x: ir.Value) -> ir.Value:
    """As in fdlibm's e_exp.c."""

    def within(x: ir.Value) -> ir.Value:
        n, power, high, low = reduced_double(v, v.least(710.0, x))
        return v.scale(_power_of_difference(v, high, low), n, power)

    return v.zero_below(-746.0, x, within)


def reduced_double(v: Vectors, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
    """n = round(x / ln 2) as floats and as integers, and what is left of f64, high - low = x - n ln 2."""
    n, power = v.round(x, _LOG2_E)
    high = v.multiply_add(n, -6.93147180369123816490e-01, x)
    return n, power, high, v.multiply(n, 1.90821492927058770002e-10)


def _power_of_difference(v: Vectors, high: ir.Value, low: ir.Value) -> ir.Value:
    """e**(high - low) of f64, up to ln(2) / 2."""
    r = v.subtract(high, low)
    square = v.multiply(r, r)
    tail = v.polynomial(
        square,
        (
            4.13813679705723846039e-08,
            -1.65339022054652515390e-06,
            6.61375632143793436117e-05,
            -2.77777777770155933842e-03,
            1.66666666666666019037e-01,
        ),
    )
    c = v.subtract(r, v.multiply(square, tail))
    quotient = v.divide(v.multiply(r, c), v.subtract(2.0, c))
    return v.subtract(1.0, v.subtract(v.subtract(low, quotient), high))


def exp2(v: Vectors, x: ir.Value) -> ir.Value:
    """2**n * e**r with n = round(x), r = (x - n) ln 2."""
    return (_exp2_single if v.width == 32 else _exp2_double)(v, x)


def _exp2_double(v: Vectors, x: ir.Value) -> ir.Value:
    """The product with ln 2 as the sum of two numbers."""

    def within(x: ir.Value) -> ir.Value:
        clamped = v.least(1025.0, x)
        n, power = v.round(clamped)
        f = v.subtract(clamped, n)
        high = v.multiply(f, 0.69314718055994530942)
        lost = v.multiply_add(f, 0.69314718055994530942, v.multiply(high, -1.0))
        low = v.multiply(v.multiply_add(f, 2.3190468138462996e-17, lost), -1.0)
        return v.scale(_power_of_difference(v, high, low), n, power)

    return v.zero_below(-1076.0, x, within)


def _exp2_single(v: Vectors, x: ir.Value) -> ir.Value:
    def within(x: ir.Value) -> ir.Value:
        clamped = v.least(129.0, x)
        n, power = v.round(clamped)
        return v.scale(_power_of_e(v, v.multiply(v.subtract(clamped, n), 0.69314718055994530942)), n, power)

    return v.zero_below(-151.0, x, within)


def expm1(v: Vectors, x: ir.Value) -> ir.Value:
    """(2**a * (r + r * r * p) + 2**a - 2**-b) * 2**b with a + b = n, as in `exp`; x itself near 0."""
    clamped = v.clamp(x, -104.0, 89.0)
    n, power = v.round(clamped, _LOG2_E)
    r = _remainder(v, clamped, n)
    less_one = v.multiply_add(v.polynomial(r, _TAIL), v.multiply(r, r), r)
    first, second = v.halves(power)
    scale = v.power_of_two(first)
    unit = v.power_of_two(arith.SubIOp(v.integer(0), second).result)
    value = v.multiply_add(less_one, scale, v.subtract(scale, unit))
    return v.where_small(x, 1e-8, x, v.multiply(value, v.power_of_two(second)))


def sinh(v: Vectors, x: ir.Value) -> ir.Value:
    """By exp in f64; x + x**3 / 6 near 0."""
    d, y = v.doubles, v.widen(x)
    power = exp_log_f64.exp(d, y)
    value = d.multiply(d.subtract(power, d.divide(1.0, power)), 0.5)
    small = d.multiply_add(d.multiply(d.multiply(y, y), 1 / 6), y, y)
    return v.narrow(d.where_small(y, 2.0**-9, small, value))


def cosh(v: Vectors, x: ir.Value) -> ir.Value:
    """By exp in f64."""
    d = v.doubles
    power = exp_log_f64.exp(d, v.widen(x))
    return v.narrow(d.multiply(d.add(power, d.divide(1.0, power)), 0.5))


def powf(v: Vectors, x: ir.Value, y: ir.Value) -> ir.Value:
    """e**(y * log |x|) in f64, with a sign for odd integers y, and what C says of 0, 1, infinities and NaN."""
    if _is_two(x):
        return exp2(v, y)
    d = v.doubles
    base, exponent = v.widen(x), v.widen(y)
    magnitude = d.math("absf", base)
    power = d.multiply(exponent, exp_log_f64.log(d, magnitude))
    value = d.zero_below(-104.0, power, lambda power: exp_log_f64.exp(d, power))
    is_integer, is_odd = _parity(d, exponent)
    value = d.where(is_odd, d.math("copysign", value, base), value)
    negative = arith.AndIOp(d.test(Predicate.OLT, base, 0.0), d.test(Predicate.OGT, base, float("-inf"))).result
    true = arith.CmpIOp(arith.CmpIPredicate.eq, d.integer(0), d.integer(0)).result
    fraction = arith.XOrIOp(is_integer, true).result
    value = d.where(arith.AndIOp(negative, fraction).result, float("nan"), value)
    infinite = d.test(Predicate.OEQ, d.math("absf", exponent), float("inf"))
    is_one = arith.AndIOp(infinite, d.test(Predicate.OEQ, magnitude, 1.0)).result
    for mask in (d.test(Predicate.OEQ, exponent, 0.0), d.test(Predicate.OEQ, base, 1.0)):
        is_one = arith.OrIOp(is_one, mask).result
    return v.narrow(d.where(is_one, 1.0, value))


def powf_double(v: Vectors, x: ir.Value, y: ir.Value) -> ir.Value | None:
    """Of f64 powers of two alone: None for others."""
    return exp2(v, y) if _is_two(x) else None


def _parity(d: Vectors, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Which numbers, once f32, are integers, and which are odd ones; those from 2**30 on are even."""
    clamped = d.clamp(y, -(2.0**30), 2.0**30)
    rounded, integer = d.round(clamped)
    is_integer = d.test(Predicate.OEQ, rounded, clamped)
    last = arith.AndIOp(integer, d.integer(1)).result
    odd = arith.CmpIOp(arith.CmpIPredicate.ne, last, d.integer(0)).result
    return is_integer, arith.AndIOp(is_integer, odd).result


def _is_two(x: ir.Value) -> bool:
    """Whether `x` is 2 in every element, known at compile time: torch.exp2 is a power of it."""
    producer = defining_op(x)
    if producer is not None and producer.name == "vector.broadcast":
        return _is_two(producer.operands[0])
    value = producer.attributes["value"] if producer is not None and producer.name == "arith.constant" else None
    if isinstance(value, ir.DenseFPElementsAttr) and value.is_splat:
        value = value.get_splat_value()
    return isinstance(value, ir.FloatAttr) and value.value == 2.0
