"""Builds sums of weights: a weight plus a smaller one at an offset, and plus a diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.channel_vectors import Number
from pipeline.ir.constants import as_index
from pipeline.mlir import arith, ir, linalg, tensor
from pipeline.passes.weight_folding.residual_terms import Diagonal
from pipeline.passes.weight_folding.weight_builder import Operand, WeightSide, generic


def plus_weight(side: WeightSide, weight: ir.Value, other: ir.Value, where: Sequence[int]) -> ir.Value:
    """`weight` + `other`, whose first element is added to the element of `weight` at the index `where`."""
    kind, small = ir.RankedTensorType(weight.type), ir.RankedTensorType(other.type)
    side.make_available(weight)
    side.make_available(other)
    if small == kind:
        return _sum(side, weight, other)
    place = list(where), list(small.shape), [1] * kind.rank
    part = side.note(tensor.ExtractSliceOp(small, weight, [], [], [], *place).operation)
    return side.note(tensor.InsertSliceOp(_sum(side, part, other), weight, [], [], [], *place).operation)


def _sum(side: WeightSide, left: ir.Value, right: ir.Value) -> ir.Value:
    kind = ir.RankedTensorType(left.type)
    dims = range(kind.rank)
    return side.pointwise(kind.shape, kind.element_type, [(left, dims), (right, dims)], "add")


def plus_diagonal(side: WeightSide, weight: ir.Value, diagonal: Diagonal) -> ir.Value:
    """`weight` + the scale of the diagonal, at its places."""
    kind = ir.RankedTensorType(weight.type)
    side.make_available(weight)
    scale = diagonal.scale or Number()
    operands: list[Operand] = [(weight, range(kind.rank)), (side.build(scale), scale.dims)]
    places = diagonal.places

    def body(element: ir.Value, factor: ir.Value, _: ir.Value) -> ir.Value:
        pairs = [(linalg.IndexOp(first).result, linalg.IndexOp(second).result) for first, second in places.equal]
        pairs += [(linalg.IndexOp(dim).result, as_index(number)) for dim, number in places.taps]
        added = arith.AddFOp(element, factor).result
        for first, second in pairs:
            here = arith.CmpIOp(arith.CmpIPredicate.eq, first, second).result
            added = arith.SelectOp(here, added, element).result
        return added

    out = tensor.EmptyOp(list(kind.shape), kind.element_type).result
    return side.note(generic(kind.rank, operands, (out, range(kind.rank)), body))
