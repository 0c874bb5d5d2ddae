"""sin, cos, tan, asin, acos, atan, atan2 of f32, computed in f64 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable

from pipeline.mlir import arith, ir, scf, vector
from pipeline.passes.legalization.math.builder import Predicate, Vectors
from pipeline.passes.legalization.math.far_angles import far_angle

_HALF_PI = 1.57079632679489661923

#: π/2 in two parts, the first of 25 bits, so that its product with an integer of 28 bits is exact.
_HALF_PI_HIGH = 1.57079631090164184570
_HALF_PI_LOW = 1.58932547735281966916e-08

#: Up to here an angle minus a multiple of π/2 keeps enough bits in f64.
_LARGEST = 2.0**20

# The kernels of FreeBSD's k_sinf.c and k_cosf.c, for angles up to π/4.
_SINE = (0.0000027183114939898219064, -0.000198393348360966317347, 0.0083333293858894631756, -0.166666666416265235595)
_COSINE = (
    0.0000243904487962774090654,
    -0.00138867637746099294692,
    0.0416666233237390631894,
    -0.499999997251031003120,
    1.0,
)

#: atan(r) / r in r * r, up to r = 1, within 7e-11; by Chebyshev interpolation.
_ARC_TANGENT = (
    -0.0006633952413764076,
    0.004732482998793988,
    -0.015828319890303207,
    0.033826215081032,
    -0.05395667730662497,
    0.07228278167635424,
    -0.08974171895628884,
    0.11091922949633486,
    -0.14283813253845248,
    0.1999990110203137,
    -0.3333333129088546,
    0.9999999999293034,
)


def sin(v: Vectors, x: ir.Value) -> ir.Value:
    """The sine."""

    def small(d: Vectors, angle: ir.Value, quadrant: ir.Value) -> ir.Value:
        value = d.where(has_bit(d, quadrant, 1), _cosine(d, angle), _sine(d, angle))
        return negate(d, has_bit(d, quadrant, 2), value)

    return v.where_small(x, 1e-4, x, _periodic(v, "math.sin", x, small))


def cos(v: Vectors, x: ir.Value) -> ir.Value:
    """The cosine."""

    def small(d: Vectors, angle: ir.Value, quadrant: ir.Value) -> ir.Value:
        value = d.where(has_bit(d, quadrant, 1), _sine(d, angle), _cosine(d, angle))
        following = arith.AddIOp(quadrant, d.integer(1)).result
        return negate(d, has_bit(d, following, 2), value)

    return _periodic(v, "math.cos", x, small)


def tan(v: Vectors, x: ir.Value) -> ir.Value:
    """The tangent: sine by cosine, or minus cosine by sine."""

    def small(d: Vectors, angle: ir.Value, quadrant: ir.Value) -> ir.Value:
        sine, cosine, odd = _sine(d, angle), _cosine(d, angle), has_bit(d, quadrant, 1)
        negative = d.math("copysign", cosine, d.where(odd, -1.0, 1.0))
        return d.divide(d.where(odd, negative, sine), d.where(odd, sine, cosine))

    return v.where_small(x, 1e-4, x, _periodic(v, "math.tan", x, small))


def _periodic(v: Vectors, name: str, x: ir.Value, small: Callable[[Vectors, ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """`small` of the angle within π/4 and the number of quarter turns.

    Of large angles by a call for each element; where numbers are computed one by one, devices have no such functions.
    """
    d = v.doubles
    wide = v.widen(x)
    turns = d.multiply(wide, 1 / _HALF_PI)
    n, quadrant = d.round(turns)
    angle = d.multiply_add(n, -_HALF_PI_LOW, d.multiply_add(n, -_HALF_PI_HIGH, wide))
    if not isinstance(v.kind, ir.VectorType):
        return v.narrow(small(d, *_near_or_far(v, x, angle, quadrant)))
    return by_calls_where_large(v, name, x, _LARGEST, v.narrow(small(d, angle, quadrant)))


def _near_or_far(v: Vectors, x: ir.Value, angle: ir.Value, quadrant: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The angle and the quarter turns of a number: these, or those of a large one."""
    large = v.test(Predicate.OGE, v.math("absf", x), _LARGEST)
    branch = scf.IfOp(large, [angle.type, quadrant.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(far_angle(v, x))
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([angle, quadrant])
    return branch.results[0], branch.results[1]


def by_calls_where_large(v: Vectors, name: str, x: ir.Value, largest: float, value: ir.Value) -> ir.Value:
    """`value`; where |x| > largest the op `name` of x, which is a call for each element, made if there is such an x."""
    large = v.test(Predicate.OGT, v.math("absf", x), largest)
    branch = scf.IfOp(_any(large), [v.kind], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        called = ir.Operation.create(name, results=[v.kind], operands=[x]).result
        scf.YieldOp([v.where(large, called, value)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([value])
    return branch.results[0]


def _any(mask: ir.Value) -> ir.Value:
    """Whether one element of a mask is true."""
    if not isinstance(mask.type, ir.VectorType):
        return mask
    truth = ir.IntegerType.get_signless(1)
    flat = ir.VectorType.get([math.prod(mask.type.shape)], truth)
    return vector.ReductionOp(truth, ir.Attribute.parse("#vector.kind<or>"), vector.ShapeCastOp(flat, mask)).result


def _sine(d: Vectors, angle: ir.Value) -> ir.Value:
    square = d.multiply(angle, angle)
    return d.multiply_add(d.multiply(square, angle), d.polynomial(square, _SINE), angle)


def _cosine(d: Vectors, angle: ir.Value) -> ir.Value:
    return d.polynomial(d.multiply(angle, angle), _COSINE)


def has_bit(d: Vectors, integer: ir.Value, bit: int) -> ir.Value:
    """The mask of the integers that have a bit, given by its value."""
    masked = arith.AndIOp(integer, d.integer(bit)).result
    return arith.CmpIOp(arith.CmpIPredicate.ne, masked, d.integer(0)).result


def negate(d: Vectors, mask: ir.Value, value: ir.Value) -> ir.Value:
    """-value where the mask holds, else `value`."""
    return d.where(mask, d.subtract(-0.0, value), value)


def atan(v: Vectors, x: ir.Value) -> ir.Value:
    """The arc tangent."""
    d = v.doubles
    wide = v.widen(x)
    return v.narrow(_angle(d, wide, d.constant(1.0)))


def atan2(v: Vectors, y: ir.Value, x: ir.Value) -> ir.Value:
    """The angle of the point (x, y)."""
    return v.narrow(_angle(v.doubles, v.widen(y), v.widen(x)))


def asin(v: Vectors, x: ir.Value) -> ir.Value:
    """The angle of the point (sqrt((1 - x) * (1 + x)), x)."""
    d = v.doubles
    wide = v.widen(x)
    return v.narrow(_angle(d, wide, _leg(d, wide)))


def acos(v: Vectors, x: ir.Value) -> ir.Value:
    """The angle of the point (x, sqrt((1 - x) * (1 + x)))."""
    d = v.doubles
    wide = v.widen(x)
    return v.narrow(_angle(d, _leg(d, wide), wide))


def _leg(d: Vectors, x: ir.Value) -> ir.Value:
    return d.math("sqrt", d.multiply(d.subtract(1.0, x), d.add(x, 1.0)))


def _angle(d: Vectors, y: ir.Value, x: ir.Value) -> ir.Value:
    """atan2(y, x): the angle in the first eighth of the circle, mirrored to where it is."""
    height, width = d.math("absf", y), d.math("absf", x)
    steep = d.test(Predicate.OGT, height, width)
    shorter, longer = d.where(steep, width, height), d.where(steep, height, width)
    slope = d.divide(shorter, longer)
    slope = d.where(d.test(Predicate.OEQ, shorter, longer), d.where(_is_zero(d, longer), 0.0, 1.0), slope)
    value = d.multiply(slope, d.polynomial(d.multiply(slope, slope), _ARC_TANGENT))
    value = d.where(steep, d.subtract(_HALF_PI, value), value)
    left = d.test(Predicate.OLT, d.math("copysign", d.constant(1.0), x), 0.0)
    value = d.where(left, d.subtract(2 * _HALF_PI, value), value)
    value = d.math("copysign", value, y)
    total = d.add(x, y)
    finite = d.test(Predicate.ORD, x, y)
    return d.where(finite, value, total)


def _is_zero(d: Vectors, x: ir.Value) -> ir.Value:
    return d.test(Predicate.OEQ, x, 0.0)
