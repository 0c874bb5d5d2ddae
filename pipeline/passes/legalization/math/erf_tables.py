"""erf of f32 by tables: a polynomial for each of 16 intervals, where processors look numbers up in registers.

With c + t = |x|, c a place in the interval of |x| whose erf is nearly a float, erf(|x|) = erf(c) + t * p(t). In the
first interval c is 0, and erf(x) = x + x * p(x), which is exact to the last digits of small numbers. The polynomials
are minimax fits of the relative error, their coefficients rounded to f32 one after the other.
"""

from __future__ import annotations

from pipeline.mlir import arith, ir
from pipeline.passes.legalization.math.builder import Predicate, Vectors

#: The intervals are so wide; from `_END` on 1 is the nearest number.
_WIDTH, _END = 0.25, 3.99

#: What is added to a number in [0, 4) so that the first four bits of its fraction are the number of its interval.
_SHIFT = 4.0
_BELOW_FRACTION = 19

#: The places c.
_CENTERS = (
    0.0,
    0.375000536441803,
    0.6249982118606567,
    0.8749971985816956,
    1.1250089406967163,
    1.3749982118606567,
    1.6249934434890747,
    1.8749991655349731,
    2.1249914169311523,
    2.374992847442627,
    2.624981164932251,
    2.874974489212036,
    3.1250319480895996,
    3.375953435897827,
    3.624046564102173,
    3.874046564102173,
)

#: erf(c), within a hundredth of a unit in the last place but for the last four.
_VALUES = (
    0.0,
    0.4041174352169037,
    0.6232395172119141,
    0.7840735912322998,
    0.8883910775184631,
    0.9481697678565979,
    0.9784432053565979,
    0.9919900298118591,
    0.9973458647727966,
    0.9992170333862305,
    0.999794602394104,
    0.9999521374702454,
    0.9999901056289673,
    0.9999982118606567,
    0.9999997019767761,
    0.9999999403953552,
)

#: The coefficients of p for each interval, highest power first.
_COEFFICIENTS = (
    (
        0.10599464178085327,
        0.04625580459833145,
        -0.02651202119886875,
        -0.0667257010936737,
        -0.06110294163227081,
        -0.030666697770357132,
        -0.0023483019322156906,
        0.011308170855045319,
        0.012441876344382763,
        0.008360462263226509,
        0.004238708410412073,
        0.0017240890301764011,
        0.0005836467607878149,
        0.00028437896980904043,
        4.647255263989791e-05,
        0.00014079248649068177,
    ),
    (
        0.001997391926124692,
        0.16550734639167786,
        0.17557165026664734,
        0.1121850237250328,
        0.028307581320405006,
        -0.030024206265807152,
        -0.049410805106163025,
        -0.042168229818344116,
        -0.02639932930469513,
        -0.013196705840528011,
        -0.005467075388878584,
        -0.0019161150557920337,
        -0.0005589271895587444,
        0.0003417262341827154,
        -5.699281973647885e-05,
        -0.0005488651222549379,
    ),
    (
        -0.37632718682289124,
        -0.2348911315202713,
        -0.05568613111972809,
        0.09291978925466537,
        0.1624523103237152,
        0.15793859958648682,
        0.1148441731929779,
        0.06744266301393509,
        0.033038727939128876,
        0.013730891980230808,
        0.0048906500451266766,
        0.001502686645835638,
        0.00039990851655602455,
        9.109783422900364e-05,
        1.8743157852441072e-05,
        2.274416146974545e-06,
    ),
    (
        6.6409961618774105e-06,
        -0.3676275610923767,
        -0.4771827161312103,
        -0.4591518044471741,
        -0.3580555021762848,
        -0.23424777388572693,
        -0.13077110052108765,
        -0.06289906799793243,
        -0.026224926114082336,
        -0.009515432640910149,
        -0.0030131451785564423,
        -0.0008342658402398229,
        -0.0002024211426032707,
        -5.0366154027869925e-05,
        -7.694859959883615e-06,
        7.16868817107752e-06,
    ),
    (
        0.12837913632392883,
        0.9803524613380432,
        0.7635012865066528,
        0.5247476100921631,
        0.3182675540447235,
        0.17036060988903046,
        0.08047396689653397,
        0.033545929938554764,
        0.012341270223259926,
        0.004006613977253437,
        0.001147989067249,
        0.0002902708656620234,
        6.474575639003888e-05,
        1.2669926945818588e-05,
        2.231288590337499e-06,
        3.4234236068186874e-07,
    ),
)


def erf_by_tables(v: Vectors, x: ir.Value) -> ir.Value:
    """erf(c) + t * p(t); NaN stays NaN."""
    magnitude = v.least(_END, v.math("absf", x))
    shifted = v.add(magnitude, _SHIFT)
    interval = arith.ShRUIOp(v.bits(shifted), v.integer(_BELOW_FRACTION)).result
    t = v.subtract(magnitude, v.lookup(_CENTERS, interval))
    first, *others = (v.lookup(column, interval) for column in _COEFFICIENTS)
    total = first
    for coefficient in others:
        total = v.multiply_add(total, t, coefficient)
    is_first = v.test(Predicate.OLT, shifted, _SHIFT + _WIDTH)
    value = v.multiply_add(total, t, v.where(is_first, magnitude, v.lookup(_VALUES, interval)))
    return v.math("copysign", value, x)
