"""Which sums of lines of a large matrix are added up line after line: a row times a matrix, sums over rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt, prod

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.element_types import element_type, is_scalar
from pipeline.ir.indexing_maps import moves
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes

#: How many lines are read side by side: processors read so many streams ahead.
_LINES = 8

#: How many vectors of each line a tile reads.
_VECTORS = 4

#: How many lines make a group at least: of more than two of them, or of a number that is not known.
_GROUP = 512

#: How many columns a block has at least and at most, and into how many parts threads may share them.
_LEAST_COLUMNS, _MOST_COLUMNS, _PARTS = 256, 4096, 4

#: Matrices of fewer bytes lie in a cache that is fast in any order; and what counts for a size that is not known.
_LEAST_BYTES, _UNKNOWN = 1 << 18, 1024


@dataclass(frozen=True)
class LineSums:
    """How such a sum is cut.

    Attributes:
        tile: its tile, of some vectors of columns.
        lines: how many lines a tile adds up before the next tile does.
        columns: how many a block has.
        group: how many lines are added up by themselves before they are added to those before; None for all.
    """

    tile: TileSizes
    lines: int
    columns: int
    group: int | None

    def __str__(self) -> str:
        return f" in blocks of {self.columns} columns, {self.lines} lines at a time"


def line_sums_of(view: LinalgOp, tile: TileSizes) -> LineSums | None:
    """How a sum over lines of a large matrix is cut; None for another op, or where tiles read lines as a whole.

    What moves along vectors is read once: no row of a tile shares it with another. A tile that adds up all terms at
    once reads a part of each line, which lie pages apart, so that nothing is read ahead.
    """
    if tile.folds or len(view.summed) != 1 or len(view.outputs) != 1 or fold_ops(view.op) is None:
        return None
    moving = [number for number in range(view.inputs) if view.moves(number, tile.vector_dim) != "fixed"]
    if len(moving) != 1 or any(map(is_scalar, view.operands)):
        return None
    if {element_type(operand) for operand in view.operands} not in ({ir.F32Type.get()}, {ir.F64Type.get()}):
        return None
    (number,), (summed,), step = moving, view.summed, _VECTORS * tile.lanes
    outer = tuple(sorted(tile.outer if tile.row_dim is None else (tile.row_dim, *tile.outer)))
    loops = [dim for dim in (summed, *outer) if view.sizes[dim] != 1]
    if view.moves(number, tile.vector_dim) == "blocked":  # lines of a panel lie side by side
        return None
    if view.moves(number, summed) != "other" or any(moves(view.maps[number], dim) == "fixed" for dim in loops):
        return None
    columns, terms = view.sizes[tile.vector_dim], view.sizes[summed]
    if (columns is not None and columns < 2 * step) or (terms is not None and terms < 2 * _LINES):
        return None
    size = prod(view.sizes[dim] or _UNKNOWN for dim in (tile.vector_dim, *loops))
    if size * element_type(view.operands[number]).width // 8 < _LEAST_BYTES:
        return None
    block = _UNKNOWN if columns is None else min(_MOST_COLUMNS, max(_LEAST_COLUMNS, columns // _PARTS))
    whole = replace(tile, row_dim=None, rows=1, vectors=_VECTORS, outer=outer)
    return LineSums(whole, _LINES, block // step * step, _group_of(terms))


def _group_of(terms: int | None) -> int | None:
    """How many lines a group has: about as many parts as there are groups, so that no chain of additions is long."""
    if terms is None:
        return _GROUP
    return max(_GROUP, _LINES * isqrt(terms // _LINES)) if terms > 2 * _GROUP else None
