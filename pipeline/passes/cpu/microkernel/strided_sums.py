"""Which long sums over rows of both operands are cut outside of the tiles: weight gradients of convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.element_types import element_type, is_scalar
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir
from pipeline.passes.cpu.microkernel.blocked_sums import Blocks, blocks_of
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes
from pipeline.passes.cpu.microkernel.window_unrolling import unrolled

#: How many terms a block has at most: so many lines of an operand stay in the first-level cache even where they are
#: apart by a power of two, so that few of its sets can hold them.
_MOST_TERMS = 64

#: How many bytes of the result lie in the second-level cache beside what is summed.
_RESULT_BYTES = 1 << 18

#: Rows that read what moves along vectors while it is near; threads share blocks of at least so many, `_MOST_BLOCKS`.
_LEAST_ROWS, _MOST_BLOCKS = 64, 8


@dataclass(frozen=True)
class StridedSums:
    """How a sum is cut, and how many rows of results a block of it is added to before the next block comes."""

    blocks: Blocks
    rows: int

    def __str__(self) -> str:
        return f" in blocks of {self.rows} rows, sums cut outside of them"


def strided_sums_of(view: LinalgOp, tile: TileSizes) -> StridedSums | None:
    """The blocks of a sum of products that reads another line of both operands for each term; None for another op.

    Where no summed loop runs along the innermost dim of an operand, each term is one line of the cache, of which a tile
    takes a part. A tile that adds up all terms at once reads them from far, and so does each tile after it.
    """
    if tile.folds or tile.row_dim is None or len(view.summed) < 2 or None in view.sizes:
        return None
    folds, rows = fold_ops(view.op), view.sizes[tile.row_dim] or 0
    if folds is None or rows < 2 * tile.rows or not _is_product(view, tile.vector_dim, tile.row_dim):
        return None
    sizes = [view.sizes[dim] for dim in view.summed]
    blocks = blocks_of(sizes, folds, _MOST_TERMS) or Blocks(0, sizes[0] or 1, sizes[0], folds)
    if unrolled(view, tile):
        return None
    width = element_type(view.operands[view.outputs[0]]).width // 8
    bytes_of_row = width * prod(view.sizes[dim] or 0 for dim in (tile.vector_dim, *tile.outer))
    most = min(_RESULT_BYTES // max(1, bytes_of_row), -(-rows // _MOST_BLOCKS))
    block = max(most, _LEAST_ROWS) // tile.rows * tile.rows
    return StridedSums(blocks, min(max(block, tile.rows), rows))


def _is_product(view: LinalgOp, vector_dim: int, row_dim: int) -> bool:
    """Whether it sums products of two floats: one moves along rows, the other along vectors, both by strides."""
    if view.inputs != 2 or len(view.outputs) != 1 or any(map(is_scalar, view.operands)):
        return False
    if {element_type(operand) for operand in view.operands} not in ({ir.F32Type.get()}, {ir.F64Type.get()}):
        return False
    walks = sorted((view.moves(number, vector_dim), view.moves(number, row_dim)) for number in range(2))
    strided = all(view.moves(number, dim) == "other" for number in range(2) for dim in view.summed)
    return strided and walks == [("fixed", "unit"), ("unit", "fixed")]
