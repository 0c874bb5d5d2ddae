"""Writes products of large matrices in the blocks that cache_blocks.py chooses."""

from __future__ import annotations

from pipeline.ir.constants import as_index
from pipeline.mlir import arith, ir, scf
from pipeline.passes.cpu.microkernel.blocked_sums import EmitLoop
from pipeline.passes.cpu.microkernel.cache_blocks import CacheBlocks, cache_blocks_of
from pipeline.passes.cpu.microkernel.partial_sums import PartialSumsEmitter, SumPart
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.vector_builders import parallel_loop


class CacheBlockedEmitter(PartialSumsEmitter):
    """Writes a product as loops over blocks, and over tiles inside of them.

    What tiles sum up of a block of terms lies in the result's memory in between, from where the next block goes on.
    The order in which terms are added stays the same.
    """

    def emit(self) -> None:
        """The whole nest."""
        self._cache = cache_blocks_of(self.view, self.tile) or CacheBlocks(None, None)
        self.nest(TilePosition(), self._sums)

    def _sums(self, position: TilePosition) -> None:
        """The loop over blocks of terms."""
        terms = self.view.sizes[self.view.summed[0]]
        assert terms is not None
        block = self._cache.terms
        if block is None:
            self._row_blocks(position)
            return
        if self.blocks is not None:  # of whole partial sums
            block = -(-block // self.blocks.iterations) * self.blocks.iterations
        loop = scf.ForOp(as_index(0), as_index(terms), as_index(block))
        with ir.InsertionPoint(loop.body):
            first = loop.induction_variable
            last = arith.MinUIOp(arith.AddIOp(first, as_index(block)).result, as_index(terms)).result
            opens = arith.CmpIOp(arith.CmpIPredicate.eq, first, as_index(0)).result
            closes = arith.CmpIOp(arith.CmpIPredicate.eq, last, as_index(terms)).result
            self.part = SumPart(first, last, opens, closes)
            self._row_blocks(position)
            scf.YieldOp([])

    def _row_blocks(self, position: TilePosition) -> None:
        """The loop over blocks of rows, and over the tiles in one; then the rows that fill no tile."""
        dim, rows, block = self.tile.row_dim, self.tile.rows, self._cache.rows
        if block is None:
            self._vectors(position, lambda inside: self._rows(inside, self._tile))
            return
        assert dim is not None
        size = self.view.sizes[dim]
        assert size is not None
        full = size // rows * rows

        def tiles(first: ir.Value) -> None:
            last = arith.MinUIOp(arith.AddIOp(first, as_index(block)).result, as_index(full)).result
            self._vectors(
                position,
                lambda inside: parallel_loop(
                    first, last, rows, lambda row: self._tile(inside.with_rows(dim, row, rows))
                ),
            )

        parallel_loop(as_index(0), as_index(full), block, tiles)
        if full < size:
            rest = size - full
            self._vectors(position, lambda inside: self._tile(inside.with_rows(dim, as_index(full), rest)))

    def in_blocks(
        self, depth: int, end: ir.Value, values: list[ir.Value], run: EmitLoop, step: int = 1
    ) -> list[ir.Value]:
        """The terms of a block."""
        if self.part is None:
            return super().in_blocks(depth, end, values, run, step)
        if self.blocks is None:
            return run(self.part.first, self.part.last, values)
        return self.blocks.run(self.part.last, values, run, step, self.part.first)
