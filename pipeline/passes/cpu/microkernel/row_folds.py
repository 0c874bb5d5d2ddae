"""Writes a row reduction along vectors: partial results in the lanes, combined at the end of the row."""

from __future__ import annotations

from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, ir, scf
from pipeline.passes.cpu.microkernel.blocked_sums import blocks_of
from pipeline.passes.cpu.microkernel.loop_nest import Context, NestEmitter
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

    def emit(self) -> None:
        """The whole nest."""
        self.nest(TilePosition(), lambda position: self._row(dict(position.at)))

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
        """One line along the vectors: full steps, then masked ones into the first vector of each output."""
        tile, total = self.tile, self.size(self.tile.vector_dim)
        step = tile.vectors * tile.lanes
        full = floor_to(total, step)

        def run(first: ir.Value, last: ir.Value, vectors: int, masked: bool, values: list[ir.Value]) -> list[ir.Value]:
            loop = scf.ForOp(first, last, as_index(vectors * tile.lanes), values)
            with ir.InsertionPoint(loop.body):
                i, old = loop.induction_variable, list(loop.inner_iter_args)
                here, mask = {**at, tile.vector_dim: i}, arith.SubIOp(total, i).result if masked else None
                registers = RegisterTile(self.stage, TilePosition(at, 1, vectors, mask))
                new = registers.compute(here, old, self._prologue(here, vectors, mask))
                scf.YieldOp(registers.where_inside(new, old) if masked else new)
            return list(loop.results)

        def run_full(first: ir.Value, last: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            return run(first, last, tile.vectors, False, values)

        partial = self.in_blocks(len(self._others), full, partial, run_full, step)
        firsts = range(0, len(partial), tile.vectors)
        rest = run(full, total, 1, True, [partial[first] for first in firsts])
        for first, value in zip(firsts, rest, strict=True):
            partial[first] = value
        return partial

    def _prologue(self, at: dict[int, ir.Value], vectors: int, mask: ir.Value | None) -> dict[ir.Value, list[ir.Value]]:
        """The vectors that the ops before the reduction compute, by buffer; stored where others need them, too."""
        known: dict[ir.Value, list[ir.Value]] = {}
        for prologue in self.context.prologues:
            stage = TiledOp(prologue, self.tile, MultiplyAdds({}, set()))
            registers = RegisterTile(stage, TilePosition(at, 1, vectors, mask))
            self.store(registers, registers.compute(at, [], known), known)
        return known
