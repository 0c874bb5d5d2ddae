"""Loads vectors of a padded tensor from the tensor itself: lanes outside of it get the number around it.

What is loaded under a mask has an address inside of the tensor wherever no lane is: processors take hundreds of cycles
for a load that its mask keeps from a page that is not there, such as the one before the first row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import coefficient
from pipeline.mlir import affine, arith, ir, vector
from pipeline.passes.cpu.microkernel.pad_pattern import Pad, index_range

_WORD = 32


def load_padded(
    pad: Pad, indexing: ir.AffineMap, at: Sequence[ir.Value], shifts: Sequence[int], vector_dim: int, lanes: int
) -> ir.Value:
    """A vector of a padded buffer whose map from loops is linear.

    Args:
        pad: the buffer.
        indexing: the map.
        at: the value of each loop.
        shifts: what is added to each.
        vector_dim: the loop that vectors run along, which moves the last index one by one.
        lanes: how many elements a vector has.
    """
    shape = list(ir.MemRefType(pad.source.type).shape)
    kind = ir.VectorType.get([lanes], ir.MemRefType(pad.source.type).element_type)
    indices: list[ir.Value] = []
    inside: list[ir.Value] = []
    lanes_inside = None
    loops, numbered = indexing.n_dims, dict(enumerate(at))
    moved = ir.AffineMap.get(loops, 0, [ir.AffineDimExpr.get(loop) + shift for loop, shift in enumerate(shifts)])
    for dim, expression in enumerate(indexing.results):
        place = expression.compose(moved) - pad.low[dim]
        index = affine.AffineApplyOp(ir.AffineMap.get(loops, 0, [place]), list(at)).result
        indices.append(index)
        if not pad.is_read:
            continue
        along = coefficient(expression, vector_dim) != 0
        ends = index_range(expression, loops, numbered)
        more = sum((coefficient(expression, loop) or 0) * shift for loop, shift in enumerate(shifts)) - pad.low[dim]
        if ends is not None and ends[0] + more >= 0 and ends[1] + more < shape[dim] - (lanes - 1 if along else 0):
            continue
        if along:
            lanes_inside = _lanes_inside(index, shape[dim], lanes)
        else:
            inside.append(arith.CmpIOp(arith.CmpIPredicate.ult, index, as_index(shape[dim])).result)
            indices[-1] = arith.MinUIOp(index, as_index(shape[dim] - 1)).result
    mask = _all(inside, lanes_inside, lanes)
    if mask is None:
        return vector.LoadOp(kind, pad.source, indices).result
    outside = vector.BroadcastOp(kind, pad.number).result
    return vector.MaskedLoadOp(kind, pad.source, indices, mask, outside).result


def _lanes_inside(index: ir.Value, size: int, lanes: int) -> ir.Value:
    """The mask of the lanes whose index, counted from that of the first one, is from 0 up to below `size`."""
    word = ir.IntegerType.get_signless(_WORD)
    kind = ir.VectorType.get([lanes], word)
    numbers = ir.DenseElementsAttr.get(np.arange(lanes, dtype=np.int32), type=kind)
    first = vector.BroadcastOp(kind, arith.IndexCastOp(word, index).result).result
    here = arith.AddIOp(first, arith.ConstantOp(kind, numbers).result).result
    bound = arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(word, size))).result
    return arith.CmpIOp(arith.CmpIPredicate.ult, here, bound).result


def _all(conditions: list[ir.Value], mask: ir.Value | None, lanes: int) -> ir.Value | None:
    """The lanes of a mask if all conditions hold, else none."""
    if not conditions:
        return mask
    every = conditions[0]
    for condition in conditions[1:]:
        every = arith.AndIOp(every, condition).result
    spread = vector.BroadcastOp(ir.VectorType.get([lanes], ir.IntegerType.get_signless(1)), every).result
    return spread if mask is None else arith.AndIOp(spread, mask).result
