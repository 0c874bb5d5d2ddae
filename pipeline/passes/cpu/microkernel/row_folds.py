"""Writes a row reduction along vectors: partial results in the lanes, combined at the end of the row."""

from __future__ import annotations

from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, ir, scf
from pipeline.passes.cpu.microkernel.blocked_sums import blocks_of
from pipeline.passes.cpu.microkernel.loop_nest import Context, NestEmitter, loop_with, with_numbers
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes
from pipeline.passes.cpu.microkernel.tiled_op import TiledOp
from pipeline.passes.cpu.microkernel.vector_builders import MultiplyAdds, floor_to, splat_of


class FoldEmitter(NestEmitter):
    """Writes the loops of one op whose vectors run along a reduction."""

    def __init__(self, view: LinalgOp, tile: TileSizes, fma: bool, context: Context):
        super().__init__(view, tile, fma, context)
        self._others = [dim for dim in self.view.summed if dim != tile.vector_dim]
        size = view.sizes[tile.vector_dim]
        steps = None if size is None else size // (tile.vectors * tile.lanes)
        self.blocks = blocks_of([*(view.sizes[dim] for dim in self._others), steps], tile.folds)
        self._prologues = [TiledOp(prologue, tile, MultiplyAdds({}, set())) for prologue in context.prologues]

    def emit(self) -> None:
        """The whole nest."""
        self.nest(TilePosition(), self._row_with_numbers)

    def _row_with_numbers(self, position: TilePosition) -> None:
        """One row, before which the numbers are loaded that are the same in all of it."""
        stage, prologues = self.stage, self._prologues
        self.stage = with_numbers(stage, position)
        self._prologues = [with_numbers(prologue, position) for prologue in prologues]
        self._row(dict(position.at))
        self.stage, self._prologues = stage, prologues

    def _row(self, at: dict[int, ir.Value]) -> None:
        """Partial results in vectors along the reduction, combined at its end with what the output holds."""
        tile = self.tile
        kinds = [ir.VectorType.get([tile.lanes], element_type(self.view.operands[o])) for o in self.view.outputs]
        start = [
            splat_of(kind, fold) for kind, fold in zip(kinds, tile.folds, strict=True) for _ in range(tile.vectors)
        ]
        partial = self._lines(0, at, start)
        registers = RegisterTile(self.stage, TilePosition(at))
        for number, (output, fold) in enumerate(zip(self.view.outputs, tile.folds, strict=True)):
            vectors = partial[number * tile.vectors : (number + 1) * tile.vectors]
            registers.fold_into(output, fold, vectors, self.context.initials.get(output))

    def _lines(self, depth: int, at: dict[int, ir.Value], partial: list[ir.Value]) -> list[ir.Value]:
        """All lines along the vectors over the reductions from the one of that number on."""
        if depth == len(self._others):
            return self._line(at, partial)
        dim = self._others[depth]

        def run(first: ir.Value, last: ir.Value, partial: list[ir.Value]) -> list[ir.Value]:
            loop = scf.ForOp(first, last, as_index(1), partial)
            with ir.InsertionPoint(loop.body):
                inner = {**at, dim: loop.induction_variable}
                scf.YieldOp(self._lines(depth + 1, inner, list(loop.inner_iter_args)))
            return list(loop.results)

        return self.in_blocks(depth, self.size(dim), partial, run)

    def _line(self, at: dict[int, ir.Value], partial: list[ir.Value]) -> list[ir.Value]:
        """One line along the vectors: full steps, then the rest: as many vectors as it needs, the last one masked.

        Where the length is not known, the rest is masked vectors one after the other.
        """
        dim, lanes, vectors = self.tile.vector_dim, self.tile.lanes, self.tile.vectors
        step, size, total = vectors * lanes, self.view.sizes[dim], self.size(dim)
        full = floor_to(total, step) if size is None else as_index(size // step * step)

        def run_full(first: ir.Value, last: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            return loop_with(first, last, step, values, lambda i, old: self._fold({**at, dim: i}, vectors, None, old))

        def fold_masked(i: ir.Value, old: list[ir.Value]) -> list[ir.Value]:
            return self._fold({**at, dim: i}, 1, arith.SubIOp(total, i).result, old)

        if size is None or size >= step:
            partial = self.in_blocks(len(self._others), full, partial, run_full, step)
        if size is None:
            rest = loop_with(full, total, lanes, partial[::vectors], fold_masked)
            return [rest[n // vectors] if n % vectors == 0 else value for n, value in enumerate(partial)]
        left = size % step
        mask = as_index(left % lanes) if left % lanes else None
        return self._fold({**at, dim: full}, -(-left // lanes), mask, partial) if left else partial

    def _fold(
        self, at: dict[int, ir.Value], vectors: int, mask: ir.Value | None, partial: list[ir.Value]
    ) -> list[ir.Value]:
        """Partial results, into the first of which, of each output, so many vectors of the line are folded."""
        registers = RegisterTile(self.stage, TilePosition(at, 1, vectors, mask))
        each = len(partial) // len(self.view.outputs)
        places = [n for n in range(len(partial)) if n % each < vectors]
        old = [partial[place] for place in places]
        new = registers.where_inside(registers.compute(at, old, self._prologue(at, vectors, mask)), old)
        folded = dict(zip(places, new, strict=True))
        return [folded.get(place, value) for place, value in enumerate(partial)]

    def _prologue(self, at: dict[int, ir.Value], vectors: int, mask: ir.Value | None) -> dict[ir.Value, list[ir.Value]]:
        """The vectors that the ops before the reduction compute, by buffer; stored where others need them, too."""
        known: dict[ir.Value, list[ir.Value]] = {}
        for stage in self._prologues:
            registers = RegisterTile(stage, TilePosition(at, 1, vectors, mask))
            self.store(registers, registers.compute(at, [], known), known)
        return known
