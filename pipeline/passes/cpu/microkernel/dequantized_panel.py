"""Which products compute what they multiply data with once for many rows, and put it into a panel."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pipeline.analysis.scaled_sum import ScaledSum, inputs_behind
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes

#: What lies in the second-level cache beside the data.
_MOST_BYTES = 1 << 19

#: Threads share the tiles along columns, not those of one panel.
_LEAST_PANELS = 8


@dataclass(frozen=True)
class Panel:
    """A panel for the tiles along rows.

    Attributes:
        shape: by the loops of the sum, and along the vectors of a tile.
        element: f32, or words of 32 bits.
        least_rows: for how many rows it is filled, where their number is not known; None where it is.
    """

    shape: tuple[int, ...]
    element: ir.Type
    least_rows: int | None

    def __str__(self) -> str:
        rows = "all" if self.least_rows is None else f"{self.least_rows} and more"
        return f", factors of {rows} rows from a panel"


def panel_of(view: LinalgOp, tile: TileSizes, found: ScaledSum, terms: int) -> Panel | None:
    """The panel for a sum of products with a dequantized factor, an element of which stands for so many terms.

    None where rows fill one tile or do not share the factor. Tiles along rows are the innermost ones then.
    """
    if tile.row_dim is None or tile.folds or found.has_shift:
        return None
    if any(view.moves(operand, tile.row_dim) != "fixed" for operand in inputs_behind(found.core, view)):
        return None
    if view.moves(found.weight, tile.vector_dim) == "fixed":
        return None
    rows, least, sizes = view.sizes[tile.row_dim], tile.rows + 1, [view.sizes[loop] for loop in view.summed]
    columns = view.sizes[tile.vector_dim]
    if None in sizes or columns is None or (rows is not None and rows < least):
        return None
    width = tile.vectors * tile.lanes
    outer = prod(view.sizes[loop] or 1 for loop in tile.outer)
    *others, last = [size or 0 for size in sizes]
    shape = (*others, -(-last // terms), width)
    if 4 * prod(shape) > _MOST_BYTES or outer * -(-columns // width) < _LEAST_PANELS:
        return None
    element = ir.F32Type.get() if terms == 1 else ir.IntegerType.get_signless(32)
    return Panel(shape, element, least if rows is None else None)
