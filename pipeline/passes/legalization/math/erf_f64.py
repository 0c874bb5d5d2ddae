"""erf of f64, by the approximations of fdlibm's s_erf.c: one quotient near 0, three others farther away."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.mlir import ir
from pipeline.passes.legalization.math import exponential
from pipeline.passes.legalization.math.builder import Predicate, Vectors

#: erf(x) / x - 1 up to 27/32 as a quotient in x**2; coefficients are those of the highest power first.
_NEAR = (
    (
        -2.37630166566501626084e-05,
        -5.77027029648944159157e-03,
        -2.84817495755985104766e-02,
        -3.25042107247001499370e-01,
        1.28379167095512558561e-01,
    ),
    (
        -3.96022827877536812320e-06,
        1.32494738004321644526e-04,
        5.08130628187576562776e-03,
        6.50222499887672944485e-02,
        3.97917223959155352819e-01,
        1.0,
    ),
)

#: erf(x) - _AT_ONE up to 5/4, in x - 1.
_AT_ONE = 8.45062911510467529297e-01
_MIDDLE = (
    (
        -2.16637559486879084300e-03,
        3.54783043256182359371e-02,
        -1.10894694282396677476e-01,
        3.18346619901161753674e-01,
        -3.72207876035701323847e-01,
        4.14856118683748331666e-01,
        -2.36211856075265944077e-03,
    ),
    (
        1.19844998467991074170e-02,
        1.36370839120290507362e-02,
        1.26171219808761642112e-01,
        7.18286544141962662868e-02,
        5.40397917702171048937e-01,
        1.06420880400844228286e-01,
        1.0,
    ),
)

#: log(x * (1 - erf(x))) + x**2 + 9/16 up to 1/0.35, in 1 / x**2.
_FAR = (
    (
        -9.81432934416914548592e00,
        -8.12874355063065934246e01,
        -1.84605092906711035994e02,
        -1.62396669462573470355e02,
        -6.23753324503260060396e01,
        -1.05586262253232909814e01,
        -6.93858572707181764372e-01,
        -9.86494403484714822705e-03,
    ),
    (
        -6.04244152148580987438e-02,
        6.57024977031928170135e00,
        1.08635005541779435134e02,
        4.29008140027567833386e02,
        6.45387271733267880336e02,
        4.34565877475229228821e02,
        1.37657754143519042600e02,
        1.96512716674392571292e01,
        1.0,
    ),
)

#: The same from there on.
_FARTHER = (
    (
        0.0,
        -4.83519191608651397019e02,
        -1.02509513161107724954e03,
        -6.37566443368389627722e02,
        -1.60636384855821916062e02,
        -1.77579549177547519889e01,
        -7.99283237680523006574e-01,
        -9.86494292470009928597e-03,
    ),
    (
        0.0,
        -2.24409524465858183362e01,
        4.74528541206955367215e02,
        2.55305040643316442583e03,
        3.19985821950859553908e03,
        1.53672958608443695994e03,
        3.25792512996573918826e02,
        3.03380607434824582924e01,
        1.0,
    ),
)

#: Where the approximations meet, and from where on 1 is the nearest number.
_BORDERS = (0.84375, 1.25, 1 / 0.35)
_IS_ONE = 6.0


def erf(v: Vectors, x: ir.Value) -> ir.Value:
    """x + x * q, or a number + q, or 1 - e**(q - 9/16 - x**2) / x, where q is a quotient of polynomials.

    Each element takes its own of four quotients, before the division. (An erfc would need more digits of x**2.)
    """
    magnitude = v.math("absf", x)
    is_near, is_middle, is_far = (v.test(Predicate.OLT, magnitude, border) for border in _BORDERS)
    clamped = v.clamp(magnitude, 0.0, _IS_ONE)
    square = v.multiply(clamped, clamped)
    farther = [
        _one_polynomial(v, v.divide(1.0, square), is_far, *coefficients)
        for coefficients in zip(_FAR, _FARTHER, strict=True)
    ]
    middle = [v.polynomial(v.subtract(clamped, 1.0), coefficients) for coefficients in _MIDDLE]
    near = [v.polynomial(square, coefficients) for coefficients in _NEAR]
    above, below = (
        v.where(is_near, one, v.where(is_middle, other, third))
        for one, other, third in zip(near, middle, farther, strict=True)
    )
    quotient = v.divide(above, below)
    power = exponential.exp(v, v.subtract(v.subtract(quotient, 0.5625), square))
    value = v.subtract(1.0, v.divide(power, clamped))
    value = v.where(is_middle, v.add(quotient, _AT_ONE), value)
    value = v.where(is_near, v.multiply_add(clamped, quotient, clamped), value)
    return v.math("copysign", value, x)


def _one_polynomial(v: Vectors, x: ir.Value, mask: ir.Value, held: Sequence[float], other: Sequence[float]) -> ir.Value:
    """The polynomial with coefficients of the one, where the mask holds, or of the other."""
    value = v.where(mask, held[0], other[0])
    for pair in zip(held[1:], other[1:], strict=True):
        value = v.multiply_add(value, x, v.where(mask, *pair))
    return value
