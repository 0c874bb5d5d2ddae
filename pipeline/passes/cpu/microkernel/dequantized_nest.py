"""Writes the loops of sums of products of dequantized factors, and fills a panel with these where rows share one."""

from __future__ import annotations

from typing import ClassVar

from pipeline.analysis.dot_product import lies_in_groups
from pipeline.ir.constants import as_index
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.nibbles import HALVES, WORD_BYTES
from pipeline.mlir import arith, ir, memref, scf
from pipeline.passes.cpu.microkernel.blocked_sums import Blocks, blocks_of
from pipeline.passes.cpu.microkernel.dequantized_panel import Panel, panel_of
from pipeline.passes.cpu.microkernel.dequantized_tile import LANES, DequantizedTile, FillsPanel
from pipeline.passes.cpu.microkernel.loop_nest import Context, EmitTiles, NestEmitter
from pipeline.passes.cpu.microkernel.loop_order import PLAIN
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes
from pipeline.passes.cpu.microkernel.tiled_op import TiledOp
from pipeline.passes.cpu.microkernel.vector_builders import scratch


class DequantizedEmitter(NestEmitter):
    """Writes the loops of one op whose body is out + data * (core * scale + shift).

    The innermost loops sum up data * core; scale and shift, which are the same for a group of terms, are applied to the
    sum of the group. Nibbles that lie in words are looked up in a table.
    """

    tile_type: ClassVar[type[DequantizedTile]] = DequantizedTile
    filling_type: ClassVar[type[FillsPanel]] = FillsPanel

    #: What the cores of the tiles that are being written have been computed to.
    _panel: ir.Value | None = None

    def __init__(self, view: LinalgOp, tile: TileSizes, fma: bool, context: Context):
        found = self.tile_type.read(view)
        assert found is not None
        self._sum = found
        self._chosen = self._panel_for(view, tile)
        super().__init__(view, tile, fma, context)

    @classmethod
    def remark(cls, view: LinalgOp, tile: TileSizes) -> str:
        """See `NestEmitter.remark`."""
        return str(cls._panel_for(view, tile) or "")

    @classmethod
    def _panel_for(cls, view: LinalgOp, tile: TileSizes) -> Panel | None:
        found = cls.tile_type.read(view)
        return None if found is None else panel_of(view, tile, found, cls.tile_type.terms_of_word)

    def emit(self) -> None:
        """The whole nest; tiles along rows are inside of all others where they share a panel."""
        if self._chosen is None:
            super().emit()
        else:
            self._emit_loops(PLAIN, TilePosition())

    def _rows(self, position: TilePosition, inner: EmitTiles) -> None:
        """The tiles along rows; many of them read what factors are from a panel, which is filled before."""
        chosen = self._chosen
        if chosen is None or self.tile.lanes == 1:
            super()._rows(position, inner)
            return
        if chosen.least_rows is None:
            self._rows_of_panel(chosen, position, inner)
            return
        assert self.tile.row_dim is not None
        rows, least = self.size(self.tile.row_dim), as_index(chosen.least_rows)
        branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.uge, rows, least).result, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            self._rows_of_panel(chosen, position, inner)
            scf.YieldOp([])
        with ir.InsertionPoint(branch.else_block):
            super()._rows(position, inner)
            scf.YieldOp([])

    def _rows_of_panel(self, chosen: Panel, position: TilePosition, inner: EmitTiles) -> None:
        dim = self.tile.row_dim
        assert dim is not None
        filling = self.filling_type(self.stage, position.with_rows(dim, as_index(0), 1))
        filling.panel = self._panel = scratch(chosen.shape, chosen.element)
        self.reduction(0, filling, dict(filling.position.at), [])
        super()._rows(position, inner)
        memref.DeallocOp(self._panel)
        self._panel = None

    def _computed_tile(self, position: TilePosition, stage: TiledOp) -> None:
        """See `NestEmitter`; of what lies in a panel, if there is one."""
        registers = self.tile_type(stage, position)
        registers.panel = self._panel
        self.finish(registers, self.reduction(0, registers, dict(position.at), self.starts(registers)))

    def reduction(
        self, depth: int, registers: RegisterTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """See `NestEmitter.reduction`."""
        assert isinstance(registers, DequantizedTile)
        if depth != self._sum.depth:
            return self._unscaled(depth, registers, at, values)
        return registers.scaled(at, values, self._unscaled(depth, registers, at, registers.starts()))

    def _unscaled(
        self, depth: int, registers: DequantizedTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        if self._sum.nibble is None or depth != len(self.view.summed) - 2 or registers.reads_panel:
            return super().reduction(depth, registers, at, values)
        bytes_, halves = self.view.summed[depth:]
        in_words = self._in_words()
        step = WORD_BYTES if in_words else 1

        def run(first: ir.Value, last: ir.Value, old: list[ir.Value]) -> list[ir.Value]:
            loop = scf.ForOp(first, last, as_index(step), old)
            with ir.InsertionPoint(loop.body):
                inner = {**at, bytes_: loop.induction_variable}
                terms = registers.words(inner, bytes_, halves) if in_words else registers.halves(inner, halves)
                scf.YieldOp(registers.add_terms(terms, list(loop.inner_iter_args)))
            return list(loop.results)

        return self.in_blocks(depth, self.size(bytes_), values, run, step)

    def _in_words(self) -> bool:
        """Whether the nibbles of each column lie in words of eight."""
        nibble = self._sum.nibble
        assert nibble is not None
        indexing, bytes_ = self.view.maps[nibble.operand], self.view.summed[-2]
        if self._sum.entry is None or self.tile.lanes != LANES:
            return False
        return lies_in_groups(indexing, self.tile.vector_dim, bytes_, WORD_BYTES)

    def _blocks_of_sums(self) -> Blocks | None:
        """Groups are blocks of their own."""
        sizes = [self.view.sizes[dim] for dim in self.view.summed]
        if self._sum.nibble is not None and self._in_words() and sizes[-2] is not None:
            sizes[-2:] = [sizes[-2] // WORD_BYTES, HALVES * WORD_BYTES]
        blocks = blocks_of(sizes, ("arith.addf",))
        return blocks if blocks is not None and self._sum.depth <= blocks.depth < len(sizes) else None
