"""exp of f32 by tables: a power of two for each sixteenth, where processors look numbers up in registers.

With n = round(16 x / ln 2) / 16, e**x = 2**floor(n) * 2**(n - floor(n)) * e**r. What is left is so small,
|r| <= ln(2) / 32, that a polynomial of the third degree is within 2e-9 of e**r.
"""

from __future__ import annotations

from pipeline.mlir import ir
from pipeline.passes.legalization.math.builder import Predicate, Vectors

_LOG2_E = 1.44269504088896341

#: ln 2 as the sum of two numbers, the first of which has so few digits that its products with n are exact.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4

#: Added to a number below 2**18, it leaves four bits for a fraction, which are the last ones.
_SHIFT = 1.5 * 2.0**19

#: 2**(place / 16), rounded.
_POWERS = (
    1.0,
    1.0442737340927124,
    1.0905077457427979,
    1.1387885808944702,
    1.1892070770263672,
    1.2418577671051025,
    1.2968395948410034,
    1.3542555570602417,
    1.4142135381698608,
    1.4768261909484863,
    1.5422108173370361,
    1.610490322113037,
    1.6817928552627563,
    1.7562521696090698,
    1.8340080976486206,
    1.9152065515518188,
)

#: By what part of it each of them is too small.
_MISSING = (
    0.0,
    4.6285471455576044e-08,
    -1.199215748926008e-08,
    4.7297824323777604e-08,
    3.1934181521364735e-08,
    3.621057231839586e-08,
    -3.0990719324108795e-08,
    -7.475213337215791e-09,
    1.7114270889351246e-08,
    -3.047683350132502e-08,
    5.233334210430485e-09,
    6.10759176566944e-09,
    -1.4719605090363075e-08,
    -5.258795177098818e-09,
    -6.128259677495862e-09,
    5.140609271592211e-09,
)

#: (e**r - 1) / r, highest power first: a minimax fit of the relative error of e**r.
_POLYNOMIAL = (0.16666735708713531, 0.5000161528587341, 1.0)

#: Below, 0 is the nearest number; from `_INFINITE` on, infinity is.
_VANISHES, _INFINITE = -104.0, 89.0


def exp_by_tables(v: Vectors, x: ir.Value) -> ir.Value:
    """e**x; see `Vectors.has_lookup` and `Vectors.has_scalef`."""
    counts = v.test(Predicate.UGE, x, _VANISHES)  # or is NaN
    clamped = v.least(_INFINITE, x)
    shifted = v.multiply_add(clamped, _LOG2_E, _SHIFT)
    n, places = v.subtract(shifted, _SHIFT), v.bits(shifted)
    r = v.multiply_add(n, -_LN2_LOW, v.multiply_add(n, -_LN2_HIGH, clamped))
    more = v.multiply_add(v.polynomial(r, _POLYNOMIAL), r, v.lookup(_MISSING, places))
    power = v.lookup(_POWERS, places)
    return v.where(counts, v.scale_by_floor(v.multiply_add(more, power, power), n), 0.0)
