"""Data as bytes with a scale for each row, which is found as the code runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.ir.rewriting import build_generic, empty_like, iterator_types, sizes_of
from pipeline.mlir import arith, ir, linalg, math, tensor

#: How many steps the largest absolute value of a row is: -128 is not used.
_STEPS = 127.0

#: The smallest scale, whose reciprocal is a number: that of rows which are all 0.
LEAST_SCALE = 2.0**-126


def rounded_by_rows(data: ir.Value, summed: Sequence[bool]) -> ir.Value:
    """Data in f32, quantized and dequantized: round(x / scale) * scale with scale = max(abs(row)) / 127.

    Args:
        summed: of each dim, whether it is one along rows.
    """
    scales = _scales(data, summed)
    rank = len(summed)
    whole = ir.AffineMap.get_identity(rank)
    by_row = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(dim) for dim in range(rank) if not summed[dim]])
    byte, loops = ir.IntegerType.get_signless(8), iterator_types([False] * rank)
    element = ir.RankedTensorType(data.type).element_type

    def quantized(elements: Sequence[ir.Value]) -> list[ir.Value]:
        nearest = math.RoundEvenOp(arith.DivFOp(elements[0], elements[1]).result).result
        least, most = (arith.ConstantOp(element, end).result for end in (-_STEPS, _STEPS))
        # A row with NaN or infinity has such a scale; its bytes are some numbers.
        within = arith.MinNumFOp(arith.MaxNumFOp(nearest, least).result, most).result
        return [arith.FPToSIOp(byte, within).result]

    def dequantized(elements: Sequence[ir.Value]) -> list[ir.Value]:
        return [arith.MulFOp(arith.SIToFPOp(element, elements[0]).result, elements[1]).result]

    maps = [whole, by_row, whole]
    steps = build_generic([data, scales], [empty_like(data, byte)], maps, loops, quantized).results[0]
    return build_generic([steps, scales], [empty_like(data, element)], maps, loops, dequantized).results[0]


def largest_along(value: ir.Value, summed: Sequence[bool]) -> ir.Value:
    """The largest absolute values of a tensor of floats along some dims."""
    return _folded(value, summed, lambda most, new: arith.MaximumFOp(most, math.AbsFOp(new).result).result)


def extremes_along(value: ir.Value, summed: Sequence[bool]) -> tuple[ir.Value, ir.Value]:
    """The smallest and the largest values of a tensor of floats along some dims, 0 among them."""
    least = _folded(value, summed, lambda least, new: arith.MinimumFOp(least, new).result)
    return least, _folded(value, summed, lambda most, new: arith.MaximumFOp(most, new).result)


def _folded(value: ir.Value, summed: Sequence[bool], fold: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """What a function of the result so far and of an element leaves of 0, along some dims."""
    element = ir.RankedTensorType(value.type).element_type
    kept = [dim for dim, gone in enumerate(summed) if not gone]
    sizes = sizes_of(value)
    zero = arith.ConstantOp(element, 0.0).result
    start = linalg.fill(zero, outs=[tensor.EmptyOp([sizes[dim] for dim in kept], element).result])
    whole = ir.AffineMap.get_identity(len(summed))
    places = ir.AffineMap.get(len(summed), 0, [ir.AffineDimExpr.get(dim) for dim in kept])
    loops = iterator_types(summed)
    made = build_generic([value], [start], [whole, places], loops, lambda elements: [fold(elements[1], elements[0])])
    return made.results[0]


def _scales(data: ir.Value, summed: Sequence[bool]) -> ir.Value:
    """The scale of each row."""
    largest = largest_along(data, summed)
    element = ir.RankedTensorType(data.type).element_type

    def divided(elements: Sequence[ir.Value]) -> list[ir.Value]:
        most, least = (arith.ConstantOp(element, number).result for number in (_STEPS, LEAST_SCALE))
        return [arith.MaximumFOp(arith.DivFOp(elements[0], most).result, least).result]

    identity = ir.AffineMap.get_identity(summed.count(False))
    loops = iterator_types([False] * summed.count(False))
    return build_generic([largest], [empty_like(largest, element)], [identity, identity], loops, divided).results[0]
