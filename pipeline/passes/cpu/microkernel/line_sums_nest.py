"""Writes sums of lines of a matrix in the blocks that line_sums.py chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel.blocked_sums import Blocks
from pipeline.passes.cpu.microkernel.line_sums import line_sums_of
from pipeline.passes.cpu.microkernel.loop_nest import Context, EmitTiles
from pipeline.passes.cpu.microkernel.partial_sums import AddedPartsEmitter, SumPart
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes
from pipeline.passes.cpu.microkernel.vector_builders import parallel_loop, plus, scratch, sequential_loop


class LineSumsEmitter(AddedPartsEmitter):
    """Writes loops over blocks of columns, over parts of the lines in each, and over the tiles of a block inside.

    What a tile sums up of a part is added to the result, a block of which stays in the first-level cache.
    """

    def __init__(self, view: LinalgOp, tile: TileSizes, fma: bool, context: Context):
        chosen, folds = line_sums_of(view, tile), fold_ops(view.op)
        assert chosen is not None and folds is not None
        super().__init__(view, chosen.tile, fma, context)
        self.sums, self._chosen = Blocks(0, chosen.lines, view.sizes[view.summed[0]], folds), chosen
        self._group: _Group | None = None
        self._in_blocks = True

    def emit(self) -> None:
        """The whole nest."""
        size, block = self.view.sizes[self.tile.vector_dim], self._chosen.columns
        if size is not None and size < block + self._step:
            self._in_blocks = False
            self.nest(TilePosition(), lambda position: self._together(position, size))
            return
        self.nest(TilePosition(), lambda position: self._vectors(position, self._edge))

    def _together(self, position: TilePosition, columns: int) -> None:
        """Few columns: all tiles in each part."""
        self._over_parts(lambda: self._vectors(position, self.tile_of_part), as_index(0), columns)

    @property
    def _step(self) -> int:
        return self.tile.vectors * self.tile.lanes

    def full_tiles(self, position: TilePosition, end: ir.Value, inner: EmitTiles) -> None:
        """The full tiles: those of one part, or in blocks, each with a loop over parts of its own."""
        if not self._in_blocks:
            self._tiles_between(position, as_index(0), end)
            return

        def block(first: ir.Value) -> None:
            last = arith.MinUIOp(arith.AddIOp(first, as_index(self._chosen.columns)).result, end).result
            self._over_parts(lambda: self._tiles_between(position, first, last), first, self._chosen.columns)

        parallel_loop(as_index(0), end, self._chosen.columns, block)

    def _tiles_between(self, position: TilePosition, first: ir.Value, last: ir.Value) -> None:
        """The tiles of one part."""
        dim, vectors = self.tile.vector_dim, self.tile.vectors
        sequential_loop(
            first, last, self._step, lambda i: self.tile_of_part(position.with_vectors(dim, i, vectors, None))
        )

    def _edge(self, position: TilePosition) -> None:
        """A tile that is not full: all of its parts."""
        self._over_parts(lambda: self.tile_of_part(position), position.at[self.tile.vector_dim], self._step)

    def _over_parts(self, emit: Callable[[], None], first_column: ir.Value, columns: int) -> None:
        """The loop over parts, and over groups of them around it where there are some."""
        end, group = self.size(self.view.summed[0]), self._chosen.group
        if group is None:
            self._parts(emit, as_index(0), self._at_least_once(end), end)
            return
        lanes, kind = self.tile.lanes, element_type(self.view.operands[self.view.outputs[0]])
        sums = scratch([-(-columns // lanes) * lanes], kind)

        def group_from(first: ir.Value) -> None:
            last = arith.MinUIOp(arith.AddIOp(first, as_index(group)).result, end).result
            self._group = _Group(sums, first_column, first, last)
            self._parts(emit, first, self._at_least_once(last), last)
            self._group = None

        sequential_loop(as_index(0), self._at_least_once(end), group, group_from)
        memref.DeallocOp(sums)

    def _at_least_once(self, end: ir.Value) -> ir.Value:
        """Where a loop over terms ends: a sum of no terms has one part, which is empty."""
        if self.view.sizes[self.view.summed[0]] is not None:
            return end
        return arith.MaxUIOp(end, as_index(1)).result

    def _parts(self, emit: Callable[[], None], begin: ir.Value, bound: ir.Value, end: ir.Value) -> None:
        """The parts of the terms between two."""

        def part_from(first: ir.Value) -> None:
            last = arith.MinUIOp(arith.AddIOp(first, as_index(self.sums.iterations)).result, end).result
            total = self.size(self.view.summed[0])
            opens = _equal(first if self._group is None else self._group.first, as_index(0))
            self.part = SumPart(first, last, opens, _equal(last, total))
            emit()

        sequential_loop(begin, bound, self.sums.iterations, part_from)

    def add(self, registers: RegisterTile, sums: list[ir.Value]) -> None:
        """Adds to the group's sums what the part comes to, and these to the result behind its last part."""
        if self._group is None or self.part is None:
            super().add(registers, sums)
            return
        kind, group = ir.VectorType(sums[0].type), self._group
        column = arith.SubIOp(registers.position.at[self.tile.vector_dim], group.column).result
        places = [plus(column, number * self.tile.lanes) for number in range(len(sums))]
        opens = _equal(self.part.first, group.first)
        before = [vector.LoadOp(kind, group.sums, [place]).result for place in places]
        added = self.combined(before, sums)
        so_far = [arith.SelectOp(opens, *pair).result for pair in zip(sums, added, strict=True)]
        branch = scf.IfOp(_equal(self.part.last, group.last), has_else=True)
        with ir.InsertionPoint(branch.then_block):
            super().add(registers, so_far)
            scf.YieldOp([])
        with ir.InsertionPoint(branch.else_block):
            for value, place in zip(so_far, places, strict=True):
                vector.StoreOp(value, group.sums, [place])
            scf.YieldOp([])


@dataclass(frozen=True)
class _Group:
    """Several parts whose terms are added up by themselves, so that no chain of additions becomes long.

    Attributes:
        sums: those of a block of columns, from `column` on.
        first, last: the first term, and the one behind the last.
    """

    sums: ir.Value
    column: ir.Value
    first: ir.Value
    last: ir.Value


def _equal(left: ir.Value, right: ir.Value) -> ir.Value:
    """Whether two indices are the same."""
    return arith.CmpIOp(arith.CmpIPredicate.eq, left, right).result
