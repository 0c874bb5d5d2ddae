"""Where reshapes have their elements from: indices along the dims of one side from those of the other one."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.ir.reshapes import reassociation
from pipeline.mlir import ir

#: The index of an element along each dim of a tensor.
Places = tuple[ir.AffineExpr, ...]


def whole_index(outer: ir.AffineExpr, inner: ir.AffineExpr, size: int) -> ir.AffineExpr | None:
    """The index whose quotient and remainder by a size two indices are; None if there is none."""
    whole = ir.AffineBinaryExpr(inner).lhs if isinstance(inner, ir.AffineModExpr) else None
    if whole is None or inner != ir.AffineExpr.get_mod(whole, size):
        return None
    return whole if outer == ir.AffineExpr.get_floor_div(whole, size) else None


def before_expand(expand: ir.Operation, places: Places) -> Places:
    """Where a tensor.expand_shape has an element from."""
    sizes = ir.RankedTensorType(expand.results[0].type).shape
    return tuple(_joined([(places[dim], sizes[dim]) for dim in group]) for group in reassociation(expand))


def _joined(parts: Sequence[tuple[ir.AffineExpr, int]]) -> ir.AffineExpr:
    """The index along dims that lie behind each other, from the index along each and its size."""
    index: ir.AffineExpr = ir.AffineConstantExpr.get(0)
    for place, size in [(place, size) for place, size in parts if size != 1]:
        whole = whole_index(index, place, size)
        index = whole or ir.AffineExpr.get_add(ir.AffineExpr.get_mul(index, size), place)
    return index


def before_collapse(collapse: ir.Operation, places: Places) -> Places:
    """Where a tensor.collapse_shape has an element from."""
    sizes = ir.RankedTensorType(collapse.operands[0].type).shape
    if not places:  # a scalar has no groups that tell of the dims of size 1
        return (ir.AffineConstantExpr.get(0),) * len(sizes)
    split = zip(reassociation(collapse), places, strict=True)
    return tuple(place for group, index in split for place in _parts(index, [sizes[dim] for dim in group]))


def _parts(index: ir.AffineExpr, sizes: Sequence[int]) -> list[ir.AffineExpr]:
    """The index along each of some dims, from the one along all of them."""
    parts: list[ir.AffineExpr] = []
    outer = [dim for dim, size in enumerate(sizes) if size != 1]
    for dim in reversed(range(len(sizes))):
        if sizes[dim] == 1:
            parts.insert(0, ir.AffineConstantExpr.get(0))
        elif dim == outer[0]:
            parts.insert(0, index)
        else:
            parts.insert(0, ir.AffineExpr.get_mod(index, sizes[dim]))
            index = ir.AffineExpr.get_floor_div(index, sizes[dim])
    return parts
