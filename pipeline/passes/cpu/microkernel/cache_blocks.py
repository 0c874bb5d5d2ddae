"""Which products of large matrices are computed in blocks that stay in cache: of a long sum, and of many rows."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.ir.element_types import element_type, is_scalar
from pipeline.ir.indexing_maps import moves
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes

#: How many bytes of an operand the tiles of one column read in a block: so many stay in the second-level cache even
#: where rows are apart by a multiple of a page, so that few of its sets can hold them.
_COLUMN_BYTES = 96 << 10

#: How many bytes of the operand with rows a block has, which are read again for each column of tiles; and how many lie
#: near enough as they are.
_ROW_BYTES, _NEAR_BYTES = 1 << 20, 1 << 21

#: A block pays from so many tiles of rows on, which share what it has in cache.
_LEAST_TILES = 4

#: Lines so far apart, of an operand so large, are not fetched ahead by the processor, and take an entry of the
#: first-level address translation each: it has about as many as a block has terms. So many rows pay for blocks.
_FAR_BYTES, _FAR_OPERAND, _FAR_TERMS, _LEAST_ROWS = 1 << 10, 1 << 20, 96, 4


@dataclass(frozen=True)
class CacheBlocks:
    """How many terms of the sum, and how many rows, a block has; None where all of them make one.

    Attributes:
        prefetches: whether what is read along vectors is asked for before it is needed.
    """

    terms: int | None
    rows: int | None
    prefetches: bool = False

    def __str__(self) -> str:
        parts = {"terms": self.terms, "rows": self.rows}
        sizes = [f"{size} {what}" for what, size in parts.items() if size is not None]
        blocks = f" in blocks of {' and '.join(sizes)}" if sizes else ""
        return blocks + (", with prefetches" if self.prefetches else "")


def cache_blocks_of(view: LinalgOp, tile: TileSizes) -> CacheBlocks | None:
    """The blocks of a product of large matrices; None for another op, or if what it reads stays in cache anyway."""
    if tile.row_dim is None or not _is_product(view, tile):
        return None
    kind = element_type(view.operands[view.outputs[0]])
    terms, rows = view.sizes[view.summed[0]], view.sizes[tile.row_dim]
    if terms is None:
        return None
    width, columns = kind.width // 8, tile.vectors * tile.lanes
    if _is_far(view, tile, terms, width):
        block = _even_part(terms, _FAR_TERMS, 1)
        return CacheBlocks(block if block < terms else None, None, True)
    if rows is not None and rows < _LEAST_TILES * tile.rows:
        return None
    block = _even_part(terms, _COLUMN_BYTES // (columns * width), 1)
    part = None
    if rows is not None and rows * block * width > _NEAR_BYTES and _rereads_rows(view, tile):
        part = _even_part(rows, _ROW_BYTES // (block * width), tile.rows)
    blocks = CacheBlocks(block if block < terms else None, part)
    return None if blocks == CacheBlocks(None, None) else blocks


def _is_product(view: LinalgOp, tile: TileSizes) -> bool:
    """Whether it sums products of two floats, one of which has rows, and the other columns, along one loop.

    Not where the columns of a tile lie in a panel of their own, which is read as one stretch of memory.
    """
    if tile.folds or view.inputs != 2 or len(view.outputs) != 1 or len(view.summed) != 1:
        return False
    kinds = {element_type(operand) for operand in view.operands}
    moving = [number for number in range(2) if view.moves(number, tile.vector_dim) != "fixed"]
    if kinds not in ({ir.F32Type.get()}, {ir.F64Type.get()}) or any(map(is_scalar, view.operands)) or len(moving) != 1:
        return False
    columns = ir.MemRefType(view.operands[moving[0]].type)
    return columns.is_dynamic_dim(columns.rank - 1) or columns.shape[-1] > tile.vectors * tile.lanes


def _is_far(view: LinalgOp, tile: TileSizes, terms: int, width: int) -> bool:
    """Whether each term is a line of its own of a large operand."""
    assert tile.row_dim is not None
    size, rows = view.sizes[tile.vector_dim], view.sizes[tile.row_dim]
    if size is None or (rows is not None and rows < _LEAST_ROWS):
        return False
    return size * width >= _FAR_BYTES and terms * size * width > _FAR_OPERAND


def _rereads_rows(view: LinalgOp, tile: TileSizes) -> bool:
    """Whether there are several columns of tiles, and what has rows is another one for each other loop."""
    size = view.sizes[tile.vector_dim]
    fixed = next(indexing for indexing in view.maps[:2] if moves(indexing, tile.vector_dim) == "fixed")
    several = size is None or size > tile.vectors * tile.lanes
    return several and all(view.sizes[dim] == 1 or moves(fixed, dim) != "fixed" for dim in tile.outer)


def _even_part(size: int, most: int, step: int) -> int:
    """A part of a size, a multiple of a step, so that all parts are about as large."""
    parts = -(-size // max(most, step))
    return -(-size // parts // step) * step if parts > 1 else size
