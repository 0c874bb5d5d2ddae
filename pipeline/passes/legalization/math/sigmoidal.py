"""tanh and erf of f32: odd polynomials near 0, one less an exponential where they saturate.

The polynomials are minimax fits of the relative error of the result, with coefficients rounded to f32 one after the
other. Each branch ends in one rounding of a sum whose second term is small, so that its own error hardly counts.
"""

from __future__ import annotations

from pipeline.mlir import ir
from pipeline.passes.legalization.math.builder import Predicate, Vectors
from pipeline.passes.legalization.math.erf_tables import erf_by_tables
from pipeline.passes.legalization.math.exponential import exp_within_range

#: Where the branches meet: up to here polynomials in x * x, so that a sum of 1 and an exponential does not cancel.
_TANH_BORDER = 0.7
_ERF_BORDER = 1.0

#: From here on 1 is the nearest number.
_TANH_IS_ONE = 9.05
_ERF_IS_ONE = 3.95

#: (tanh(x) / x - 1) / x**2 in x**2, highest power first.
_TANH = (-0.005140489898622036, 0.020094355568289757, -0.05355996638536453, 0.1332913190126419, -0.3333319127559662)

#: erf(x) / x - 1 in x**2.
_ERF = (
    -0.0005631216336041689,
    0.004917483776807785,
    -0.026711227372288704,
    0.11280175298452377,
    -0.37612324953079224,
    0.12837912142276764,
)

#: log2(1 - erf(x)) / x in x.
_LOG2_ERFC = (
    0.0003039026923943311,
    -0.0045978534035384655,
    0.032891396433115005,
    -0.15165075659751892,
    -0.9173107743263245,
    -1.6280525922775269,
)

#: (2**r - 1) / r for |r| up to 1/2, within 1e-7: where erf is computed by it, that is a sixth of it in erf.
_POWER_OF_TWO = (
    0.0013270897325128317,
    0.009671361185610294,
    0.055507078766822815,
    0.24022245407104492,
    0.6931470036506653,
)


def tanh(v: Vectors, x: ir.Value) -> ir.Value:
    """x + x**3 * p(x**2); from 0.7 on 1 - 2 / (e**2x + 1)."""
    magnitude = v.math("absf", x)
    square = v.multiply(magnitude, magnitude)
    small = v.multiply_add(v.multiply(v.polynomial(square, _TANH), square), magnitude, magnitude)
    clamped = v.least(_TANH_IS_ONE, magnitude)
    power = exp_within_range(v, v.add(clamped, clamped))
    large = v.subtract(1.0, v.divide(2.0, v.add(power, 1.0)))
    return _meet(v, x, magnitude, _TANH_BORDER, small, large)


def erf(v: Vectors, x: ir.Value) -> ir.Value:
    """x + x * p(x**2); from 1 on 1 - 2**(x * q(x)). By tables where there are instructions for these."""
    if v.has_lookup:
        return erf_by_tables(v, x)
    magnitude = v.math("absf", x)
    square = v.multiply(magnitude, magnitude)
    small = v.multiply_add(v.polynomial(square, _ERF), magnitude, magnitude)
    clamped = v.least(_ERF_IS_ONE, magnitude)
    large = v.subtract(1.0, _power_of_two(v, v.multiply(v.polynomial(clamped, _LOG2_ERFC), clamped)))
    return _meet(v, x, magnitude, _ERF_BORDER, small, large)


def _power_of_two(v: Vectors, x: ir.Value) -> ir.Value:
    """2**n * 2**r with n = round(x), r = x - n, where that is a normal number."""
    n, power = v.round(x)
    r = v.subtract(x, n)
    return v.scale_within_range(v.multiply_add(v.polynomial(r, _POWER_OF_TWO), r, 1.0), n, power)


def _meet(v: Vectors, x: ir.Value, magnitude: ir.Value, border: float, small: ir.Value, large: ir.Value) -> ir.Value:
    """`large` above the border, else `small`, as for NaN; with the sign of `x`."""
    value = v.where(v.test(Predicate.OGT, magnitude, border), large, small)
    return v.math("copysign", value, x)
