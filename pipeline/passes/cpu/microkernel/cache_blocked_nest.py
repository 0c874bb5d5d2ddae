"""Writes products of large matrices in the blocks that cache_blocks.py chooses."""

from __future__ import annotations

from dataclasses import replace

from pipeline.ir.constants import as_index
from pipeline.mlir import arith, ir, memref, scf
from pipeline.passes.cpu.microkernel.blocked_sums import EmitLoop
from pipeline.passes.cpu.microkernel.cache_blocks import CacheBlocks, cache_blocks_of
from pipeline.passes.cpu.microkernel.partial_sums import PartialSumsEmitter, SumPart
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.vector_builders import parallel_loop, plus

#: How many tiles ahead something is asked for, to lie in the second-level cache when it is needed.
_AHEAD, _SECOND_LEVEL = 4, 2


class _PrefetchingTile(RegisterTile):
    """A tile that asks for what tiles behind it read along their vectors."""

    def load(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """See `TileAccesses.load`."""
        view, tile = self.stage.view, self.stage.tile
        if operand < view.inputs and view.moves(operand, tile.vector_dim) != "fixed":
            place = plus(at[tile.vector_dim], _AHEAD * tile.vectors * tile.lanes)
            indices = self._indices(operand, {**at, tile.vector_dim: place}, row, column)
            memref.PrefetchOp(self._buffer(operand), indices, False, _SECOND_LEVEL, True)
        return super().load(operand, at, row, column)


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
        if self.blocks is not None and block < self.blocks.iterations:
            self.blocks = replace(self.blocks, iterations=block)
        elif self.blocks is not None:  # of whole partial sums
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

    def _tile(self, position: TilePosition) -> None:
        """A tile of a block."""
        if not self._cache.prefetches:
            super()._tile(position)
            return
        registers = _PrefetchingTile(self.stage, position)
        self.finish(registers, self.reduction(0, registers, dict(position.at), self.starts(registers)))

    def in_blocks(
        self, depth: int, end: ir.Value, values: list[ir.Value], run: EmitLoop, step: int = 1
    ) -> list[ir.Value]:
        """The terms of a block."""
        if self.part is None:
            return super().in_blocks(depth, end, values, run, step)
        if self.blocks is None:
            return run(self.part.first, self.part.last, values)
        return self.blocks.run(self.part.last, values, run, step, self.part.first)
