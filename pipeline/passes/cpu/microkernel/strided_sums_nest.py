"""Writes sums over rows of both operands in the blocks that strided_sums.py chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType

from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type
from pipeline.mlir import arith, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel.loop_nest import EmitTiles
from pipeline.passes.cpu.microkernel.partial_sums import AddedPartsEmitter, SumPart
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.strided_sums import strided_sums_of
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.vector_builders import parallel_loop, scratch


class _TileOfPanel(RegisterTile):
    """A tile whose vectors lie in a panel: the terms of a block, one after the other.

    Attributes:
        panel: [terms along each summed loop.., columns], with the operand that it has a part of.
        first: the term of each of these loops that it begins with.
    """

    panel: tuple[int, ir.Value] | None = None
    first: Mapping[int, ir.Value] = MappingProxyType({})

    def load(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """A vector of an operand, of the panel if that has it."""
        if self.panel is None or self.panel[0] != operand:
            return super().load(operand, at, row, column)
        panel = self.panel[1]
        kind = ir.VectorType.get([self.stage.tile.lanes], ir.MemRefType(panel.type).element_type)
        return vector.LoadOp(kind, panel, self.place(at, column)).result

    def place(self, at: Mapping[int, ir.Value], column: int) -> list[ir.Value]:
        """Where a vector of the panel is."""
        terms = [arith.SubIOp(at[loop], first).result for loop, first in self.first.items()]
        return [*terms, as_index(column * self.stage.tile.lanes)]


class StridedSumsEmitter(AddedPartsEmitter):
    """Writes the loops over blocks of a sum outside of those over tiles.

    What a tile sums up of a block is added to the result in memory: partial sums are those that registers would hold,
    in the same order. What several tiles read along their vectors is put into a panel first.
    """

    def emit(self) -> None:
        """The whole nest."""
        chosen, dim, rows = strided_sums_of(self.view, self.tile), self.tile.row_dim, self.tile.rows
        assert chosen is not None and dim is not None
        self.sums, self._panel = chosen.blocks, None
        self._packed = next(number for number in range(2) if self.view.moves(number, self.tile.vector_dim) == "unit")
        size = self.view.sizes[dim]
        assert size is not None
        full = size // rows * rows

        def tiles(first: ir.Value, last: ir.Value) -> EmitTiles:
            def emit(inside: TilePosition) -> None:
                parallel_loop(first, last, rows, lambda i: self.tile_of_part(inside.with_rows(dim, i, rows)))

            return emit

        def block(first: ir.Value) -> None:
            last = arith.MinUIOp(arith.AddIOp(first, as_index(chosen.rows)).result, as_index(full)).result
            self._over_sums(self._packed_for(tiles(first, last)))

        if full <= chosen.rows:
            block(as_index(0))
        else:
            parallel_loop(as_index(0), as_index(full), chosen.rows, block)
        if full < size:
            rest = size - full
            self._over_sums(lambda inside: self.tile_of_part(inside.with_rows(dim, as_index(full), rest)))

    def _packed_for(self, tiles: EmitTiles) -> EmitTiles:
        """The tiles, behind a panel for them; it is inside of all loops that threads may share around it."""

        def emit(position: TilePosition) -> None:
            panel = self._panel = self._scratch()
            self._pack(panel, position)
            tiles(position)
            memref.DeallocOp(panel)
            self._panel = None

        return emit

    def _scratch(self) -> ir.Value:
        """Memory for a panel."""
        inner = [self.view.sizes[dim] or 0 for dim in self.view.summed[self.sums.depth + 1 :]]
        shape = [self.sums.iterations, *inner, self.tile.vectors * self.tile.lanes]
        return scratch(shape, element_type(self.view.operands[self._packed]))

    def _pack(self, panel: ir.Value, position: TilePosition) -> None:
        """Fills the panel with what the tiles at a position read of a block of the sum."""
        depth = self.sums.depth
        assert self.part is not None
        first, last = self.part.first, self.part.last
        registers = self.registers(position)
        loaded = RegisterTile(self.stage, position)
        at = {**position.at, **self.part.counters}

        def level(dims: Sequence[int], at: dict[int, ir.Value]) -> None:
            if not dims:
                for column in range(position.vectors):
                    value = loaded.load(self._packed, at, 0, column)
                    vector.StoreOp(value, panel, registers.place(at, column))
                return
            ends = (first, last) if dims[0] == self.view.summed[depth] else (as_index(0), self.size(dims[0]))
            loop = scf.ForOp(*ends, as_index(1))
            with ir.InsertionPoint(loop.body):
                level(dims[1:], {**at, dims[0]: loop.induction_variable})
                scf.YieldOp([])

        level(self.view.summed[depth:], at)

    def registers(self, position: TilePosition) -> _TileOfPanel:
        """The tile at a position."""
        registers = _TileOfPanel(self.stage, position)
        if self._panel is not None and self.part is not None:
            inner = self.view.summed[self.sums.depth :]
            registers.panel = self._packed, self._panel
            registers.first = {dim: as_index(0) if number else self.part.first for number, dim in enumerate(inner)}
        return registers

    def _over_sums(self, rows: EmitTiles) -> None:
        """The loops over the blocks of the sum, those around the rows of tiles, then these."""
        steps = [1] * self.sums.depth + [self.sums.iterations]
        dims = self.view.summed[: len(steps)]
        sizes = [as_index(self.view.sizes[dim] or 0) for dim in dims]

        def level(depth: int, counters: list[ir.Value]) -> None:
            if depth < len(steps):
                loop = scf.ForOp(as_index(0), sizes[depth], as_index(steps[depth]))
                with ir.InsertionPoint(loop.body):
                    level(depth + 1, [*counters, loop.induction_variable])
                    scf.YieldOp([])
                return
            ends = [
                arith.MinUIOp(arith.AddIOp(counter, as_index(step)).result, size).result
                for counter, step, size in zip(counters, steps, sizes, strict=True)
            ]
            opens, closes = _all_equal(counters, [as_index(0)] * len(counters)), _all_equal(ends, sizes)
            around = dict(zip(dims[:-1], counters, strict=False))
            self.part = SumPart(counters[-1], ends[-1], opens, closes, around)
            self.nest(TilePosition(), lambda position: self._vectors(position, rows))

        level(0, [])


def _all_equal(left: list[ir.Value], right: list[ir.Value]) -> ir.Value:
    """Whether all numbers are the others."""
    equal = [arith.CmpIOp(arith.CmpIPredicate.eq, *pair).result for pair in zip(left, right, strict=True)]
    return reduce(lambda one, other: arith.AndIOp(one, other).result, equal)
