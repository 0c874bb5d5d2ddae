"""Which tiles of an op on padded images read nothing of the border: these load without masks."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import affine, arith, ir
from pipeline.passes.cpu.microkernel.pad_pattern import Pad, index_range
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes

#: The part of all tiles that has to be inside, in percent, for code of its own.
_WORTH = 40


def tile_is_inside(view: LinalgOp, tile: TileSizes, position: TilePosition, pads: Mapping[int, Pad]) -> ir.Value | None:
    """Whether all that a tile reads of padded inputs lies inside of them; None where that is not worth a branch.

    It is where lanes lie over the border, so that each load has a mask of its own: images with channels first.
    """
    if position.mask is not None:
        return None
    conditions: list[tuple[ir.AffineExpr, int, int]] = []
    part, crosses = 1.0, False
    for operand, pad in pads.items():
        for dim, expression in enumerate(view.maps[operand].results):
            extent = _extent(view, tile, position, expression)
            starts = index_range(expression, view.loops, position.at)
            if extent is None or starts is None:
                return None
            size = ir.MemRefType(pad.source.type).shape[dim]
            first, last = starts[0] + extent[0] - pad.low[dim], starts[1] + extent[1] - pad.low[dim]
            if first >= 0 and last < size:
                continue
            places = size - (extent[1] - extent[0])  # where a tile that is inside may begin
            if places <= 0:
                return None
            part *= min(1.0, places / (starts[1] - starts[0] + 1))
            crosses = crosses or bool(coefficient(expression, tile.vector_dim))
            conditions.append((expression, extent[0] - pad.low[dim], places))
    if not crosses or part * 100 < _WORTH:
        return None
    found = [_begins_within(expression, view.loops, position, *rest) for expression, *rest in conditions]
    return functools.reduce(lambda one, other: arith.AndIOp(one, other).result, found)


def _extent(
    view: LinalgOp, tile: TileSizes, position: TilePosition, expression: ir.AffineExpr
) -> tuple[int, int] | None:
    """How far an index runs within a tile, from where it begins; None if that is not known."""
    counts = {dim: view.sizes[dim] for dim in view.summed}
    counts[tile.vector_dim] = position.vectors * tile.lanes
    if tile.row_dim is not None:
        counts[tile.row_dim] = position.rows
    ends = [0, 0]
    for dim in range(view.loops):
        factor = coefficient(expression, dim)
        if factor == 0:
            continue
        count = counts.get(dim, 1)
        if factor is None or count is None:
            return None
        ends[factor > 0] += factor * (count - 1)
    return ends[0], ends[1]


def _begins_within(expression: ir.AffineExpr, loops: int, position: TilePosition, more: int, places: int) -> ir.Value:
    """Whether the index that a tile begins with, plus `more`, is from 0 up to below `places`."""
    moved = ir.AffineMap.get(loops, 0, [expression + more])
    counters = [position.at.get(dim, as_index(0)) for dim in range(loops)]
    index = affine.AffineApplyOp(moved, counters).result
    return arith.CmpIOp(arith.CmpIPredicate.ult, index, as_index(places)).result
