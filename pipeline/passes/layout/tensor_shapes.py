"""Builds tensors of the same elements in another shape or order, of fewer, or with zeros around.

Sizes that are known at run time only are taken from the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.ir.constants import zero
from pipeline.ir.rewriting import empty_like, size_of
from pipeline.mlir import ir, linalg, tensor

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """The dims of a tensor in another order."""
    output = empty_like(value, ir.RankedTensorType(value.type).element_type, permutation)
    return linalg.transpose(value, outs=[output], permutation=list(permutation)).results[0]


def pad_with_zeros(value: ir.Value, low: Sequence[int], high: Sequence[int | ir.Value]) -> ir.Value:
    """A tensor of floating-point numbers with so many zeros before and behind it, for each dim."""
    if not any(low) and all(isinstance(count, int) and not count for count in high):
        return value
    kind = ir.RankedTensorType(value.type)
    known = [count if isinstance(count, int) else _DYNAMIC for count in high]
    shape = [
        _DYNAMIC if _DYNAMIC in (size, last) else size + first + last
        for size, first, last in zip(kind.shape, low, known, strict=True)
    ]
    border = zero(kind.element_type)
    given = [count for count in high if not isinstance(count, int)]
    pad = tensor.PadOp(ir.RankedTensorType.get(shape, kind.element_type), value, [], given, low, known)
    with ir.InsertionPoint(ir.Block.create_at_start(pad.operation.regions[0], [ir.IndexType.get()] * kind.rank)):
        tensor.YieldOp(border)
    return pad.result


def expand(value: ir.Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> ir.Value:
    """A tensor with each dim split into the dims of a group; only groups of one dim may be of unknown size."""
    kind = ir.RankedTensorType.get(list(shape), ir.RankedTensorType(value.type).element_type)
    if kind == value.type:
        return value
    sizes = [size_of(value, dim) for dim, group in enumerate(groups) if shape[group[0]] == _DYNAMIC]
    return tensor.ExpandShapeOp(kind, value, [list(group) for group in groups], sizes, list(shape)).result


def leading(value: ir.Value, sizes: Sequence[int | ir.Value]) -> ir.Value:
    """So many elements from the start of each dim."""
    kind, rank = ir.RankedTensorType(value.type), len(sizes)
    if list(kind.shape) == list(sizes):
        return value
    shape = [size if isinstance(size, int) else _DYNAMIC for size in sizes]
    given = [size for size in sizes if not isinstance(size, int)]
    cut = ir.RankedTensorType.get(shape, kind.element_type)
    return tensor.ExtractSliceOp(cut, value, [], given, [], [0] * rank, shape, [1] * rank).result
