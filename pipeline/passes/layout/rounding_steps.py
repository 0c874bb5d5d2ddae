"""Scales and zero points for rounding to integers of a few bits: f32 for 8 bits, bf16 for 4; zero points are bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.ir.rewriting import build_generic, empty_like, iterator_types
from pipeline.mlir import arith, ir, math
from pipeline.passes.layout.quantized_rows import LEAST_SCALE

#: By the bits of a weight: how many steps its largest absolute value is. Of 8 bits -128 is not used; of 4, where it
#: counts, it is, and the largest weight is half a step from the number that it becomes.
_STEPS = {8: 127.0, 4: 7.5}

#: Scales of four bits are rounded to bf16: upwards, so that the largest weight stays within the steps.
_UPWARDS = 1.0 + 2.0**-8


def scales_of(largest: ir.Value, bits: int) -> ir.Value:
    """The scales for some largest absolute values."""
    return _elementwise([largest], _stored(bits), lambda elements: _scale(elements[0], _STEPS[bits], bits))


def scales_between(least: ir.Value, most: ir.Value, bits: int) -> ir.Value:
    """The scales by which all steps lie from the smallest to the largest value."""
    steps = 2.0**bits - 1
    return _elementwise(
        [least, most],
        _stored(bits),
        lambda elements: _scale(arith.SubFOp(elements[1], elements[0]).result, steps, bits),
    )


def zero_points_of(least: ir.Value, scales: ir.Value, bits: int) -> ir.Value:
    """The integers that stand for 0 where the smallest one stands for the smallest value."""
    byte = ir.IntegerType.get_signless(8)

    def zero(elements: Sequence[ir.Value]) -> ir.Value:
        steps = arith.DivFOp(elements[0], as_float(elements[1])).result
        lowest = arith.ConstantOp(steps.type, -(2.0 ** (bits - 1))).result
        nearest = math.RoundEvenOp(arith.SubFOp(lowest, steps).result).result
        return arith.FPToSIOp(byte, clamped(nearest, bits)).result

    return _elementwise([least, scales], byte, zero)


def clamped(value: ir.Value, bits: int) -> ir.Value:
    """The nearest integer that has so many bits, as a float."""
    least, most = (arith.ConstantOp(value.type, float(end)).result for end in (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    return arith.MinimumFOp(arith.MaximumFOp(value, least).result, most).result


def as_float(value: ir.Value) -> ir.Value:
    """A scale, a zero point or a byte in f32."""
    if isinstance(value.type, ir.IntegerType):
        return arith.SIToFPOp(ir.F32Type.get(), value).result
    return arith.ExtFOp(ir.F32Type.get(), value).result if isinstance(value.type, ir.BF16Type) else value


def _stored(bits: int) -> ir.Type:
    return ir.F32Type.get() if bits == 8 else ir.BF16Type.get()


def _scale(width: ir.Value, steps: float, bits: int) -> ir.Value:
    """A scale by which so many steps are as wide."""
    most, least = (arith.ConstantOp(width.type, number).result for number in (steps, LEAST_SCALE))
    scale = arith.MaximumFOp(arith.DivFOp(width, most).result, least).result
    if bits == 8:
        return scale
    upwards = arith.MulFOp(scale, arith.ConstantOp(width.type, _UPWARDS).result).result
    return arith.TruncFOp(_stored(bits), upwards).result


def _elementwise(
    inputs: Sequence[ir.Value], element: ir.Type, body: Callable[[Sequence[ir.Value]], ir.Value]
) -> ir.Value:
    rank = ir.RankedTensorType(inputs[0].type).rank
    maps = [ir.AffineMap.get_identity(rank)] * (len(inputs) + 1)
    loops = iterator_types([False] * rank)
    empty = empty_like(inputs[0], element)
    return build_generic(list(inputs), [empty], maps, loops, lambda elements: [body(elements)]).results[0]
