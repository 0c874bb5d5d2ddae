"""Groups of terms of a sum that share a scale, read off the places of scales and zero points."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir
from pipeline.passes.layout.dequantization import Source
from pipeline.passes.tensor.reshape_splits import Splits


def groups_of(product: LinalgOp, sources: Sequence[Source]) -> Splits | None:
    """How the loop of the sum becomes one over groups and one over what shares a scale; None if all shares one."""
    for source in sources:
        for place in source.places:
            found = group_of(place)
            loop, length = (None, 1) if found is None else found
            size = product.sizes[loop] if loop is not None else None
            if loop is not None and size is not None and size % length == 0:
                return Splits({loop: (size // length, length)})
    return None


def group_of(place: ir.AffineExpr) -> tuple[int | None, int] | None:
    """The loop and the number of its iterations that share an index loop / number; None for another index."""
    if not isinstance(place, ir.AffineFloorDivExpr):
        return None
    index, group = ir.AffineBinaryExpr(place).lhs, ir.AffineBinaryExpr(place).rhs
    return loop_of(index), ir.AffineConstantExpr(group).value


def sums_read(source: Source, product: LinalgOp) -> set[int] | None:
    """The loops of a sum along which a scale or zero point changes; None where its places are of another form.

    A place is a loop, a constant, or the number of a group, in which a loop of the sum is cut evenly.
    """
    found = set()
    for place in source.places:
        if isinstance(place, ir.AffineConstantExpr):
            continue
        loop, length = group_of(place) or (loop_of(place), 1)
        size = product.sizes[loop] if loop is not None else None
        if loop is None or (length > 1 and (size is None or size % length or not product.reductions[loop])):
            return None
        found |= {loop} if product.reductions[loop] else set()
    return found
