"""Tiles of groups: how much of the loops that several ops have in common goes into one tile."""

from __future__ import annotations

from math import prod

from pipeline.analysis.alignment import Alignment
from pipeline.analysis.naming import is_product
from pipeline.analysis.tiling import element_bytes
from pipeline.mlir import ir

#: A matrix product of fewer rows does not fill the registers.
_ROWS_OF_A_PRODUCT = 32

#: What a tile with matrix products may take, in multiples of what another one may: it is read again and again.
_SCRATCH_OF_A_PRODUCT = 32


def in_tiling_order(alignment: Alignment) -> list[tuple[int, ...]]:
    """The common loops, outermost first: in the order of the dims of what the last op computes."""
    last = len(alignment.ops) - 1
    results = alignment.ops[last].maps[-1].results
    order = [ir.AffineDimExpr(one).position for one in results if isinstance(one, ir.AffineDimExpr)]
    return sorted(alignment.common, key=lambda loops: order.index(loops[last]))


def choose_tiles(alignment: Alignment, scratch: int) -> list[int]:
    """The size of a tile along each common loop, outermost first: outer loops are cut until a tile fits into `scratch`.

    Inner loops stay whole as long as that is possible: vectors run along them.
    """
    loops = in_tiling_order(alignment)
    sizes = [alignment.ops[0].size(loop[0]) for loop in loops]
    one = _bytes_of_one(alignment)
    has_product = any(is_product(view.op) for view in alignment.ops)
    most = max(1, (scratch * _SCRATCH_OF_A_PRODUCT if has_product else scratch) // max(1, one))
    tiles: list[int] = []
    for number, size in enumerate(sizes):
        inner = prod(size or 1 for size in sizes[number + 1 :])
        tile = max(1, most // inner)
        if has_product and number == len(sizes) - 1:
            tile = max(tile, _ROWS_OF_A_PRODUCT)
        tiles.append(tile if size is None else min(tile, max(1, size)))
    return tiles


def _bytes_of_one(alignment: Alignment) -> int:
    """What the values between the ops take for one iteration of the common loops."""
    total = 0
    for value in alignment.inner:
        total += prod(256 if size is None else size for size in alignment.sizes(value)) * element_bytes(value)
    return total
