"""Angles far from 0, less their whole turns: Payne and Hanek's multiplication by many bits of 2 / π, in integers."""

from __future__ import annotations

import math

from pipeline.mlir import arith, ir
from pipeline.passes.legalization.math.builder import Predicate, Vectors

#: The first 224 binary places of 2 / π.
_TWO_BY_PI = 0xA2F9836E_4E441529_FC2757D1_F534DDC0_DB629599_3C439041_FE5163AB

#: The exponent, as f32 store it, of the least angles: 2**20.
_LEAST = 147

#: The same places behind five more zeros, in words: of the least angles, whole turns are in front of the first bit.
_WORDS = [_TWO_BY_PI >> 5 >> 32 * (6 - number) & 0xFFFFFFFF for number in range(7)]

#: How many of these words can be the first one that an f32 needs.
_FIRSTS = 4


def far_angle(v: Vectors, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """|x| >= 2**20 of f32 as an angle within π/4, in f64, and quarter turns, of which the last two bits count.

    x = m * 2**s with an integer m, so bits of 2 / π with a weight above 2**(1 - s) give whole turns. The 96 bits behind
    them times m are the quarter turns and a fraction of 62 bits, which is exact enough for the f32 that are nearest to
    a multiple of π/2. Of infinity, the angle is NaN.
    """
    d = v.doubles
    stored = arith.ExtUIOp(d.integers, v.bits(v.math("absf", x))).result
    mantissa = arith.OrIOp(arith.AndIOp(stored, d.integer(0x7FFFFF)).result, d.integer(0x800000)).result
    place = arith.SubIOp(arith.ShRUIOp(stored, d.integer(23)).result, d.integer(_LEAST)).result
    upper, lower = _bits_from(d, place)
    carried = arith.ShRUIOp(arith.MulIOp(mantissa, lower).result, d.integer(32)).result
    turns = arith.AddIOp(arith.MulIOp(mantissa, upper).result, carried).result
    quadrant = arith.ShRUIOp(arith.AddIOp(turns, d.integer(1 << 61)).result, d.integer(62)).result
    rest = arith.SubIOp(turns, arith.ShLIOp(quadrant, d.integer(62)).result).result
    angle = d.multiply(arith.SIToFPOp(d.kind, rest).result, math.pi / 2 / 2.0**62)
    back = v.test(Predicate.OLT, x, 0.0)
    quadrant = arith.SelectOp(back, arith.SubIOp(d.integer(0), quadrant).result, quadrant).result
    finite = v.test(Predicate.OLT, v.math("absf", x), math.inf)
    return d.where(finite, d.where(back, d.subtract(-0.0, angle), angle), math.nan), quadrant


def _bits_from(d: Vectors, place: ir.Value) -> tuple[ir.Value, ir.Value]:
    """64 bits of the words from a bit on, and the 32 behind them."""
    first = arith.ShRUIOp(place, d.integer(5)).result
    shift = arith.AndIOp(place, d.integer(31)).result
    high, low = _pair(d, first, 0), _pair(d, first, 2)
    into = arith.ShRUIOp(arith.ShRUIOp(low, d.integer(1)).result, arith.SubIOp(d.integer(63), shift).result).result
    upper = arith.OrIOp(arith.ShLIOp(high, shift).result, into).result
    return upper, arith.ShRUIOp(arith.ShLIOp(low, shift).result, d.integer(32)).result


def _pair(d: Vectors, first: ir.Value, behind: int) -> ir.Value:
    """Two words as 64 bits, so many words behind the first one."""
    pairs = [_WORDS[number + behind] << 32 | _WORDS[number + behind + 1] for number in range(_FIRSTS)]
    signed = [pair - (1 << 64) if pair >> 63 else pair for pair in pairs]
    value = d.integer(signed[-1])
    for number in reversed(range(_FIRSTS - 1)):
        chosen = arith.CmpIOp(arith.CmpIPredicate.eq, first, d.integer(number)).result
        value = arith.SelectOp(chosen, d.integer(signed[number]), value).result
    return value
