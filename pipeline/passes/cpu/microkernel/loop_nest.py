"""Writes the loops of a linalg op over register tiles; what the pass tile-and-vectorize emits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.analysis.transposed_conv import taps_of_phase
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import affine, arith, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel import narrow_elements, window_unrolling
from pipeline.passes.cpu.microkernel.blocked_sums import Blocks, EmitLoop, blocks_of
from pipeline.passes.cpu.microkernel.lane_factors import in_whole_vectors
from pipeline.passes.cpu.microkernel.loop_order import Loops, loop_order
from pipeline.passes.cpu.microkernel.pad_pattern import Pad
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes, crosses_vectors
from pipeline.passes.cpu.microkernel.tiled_op import TiledOp
from pipeline.passes.cpu.microkernel.tiles_inside import tile_is_inside
from pipeline.passes.cpu.microkernel.vector_builders import MultiplyAdds, floor_to, multiply_adds, parallel_loop

#: Writes the tiles inside of some loops, at a position in these.
EmitTiles = Callable[[TilePosition], None]


@dataclass(frozen=True)
class Context:
    """What stands around an op.

    Attributes:
        initials: for outputs that a fill came before, the number that they start from.
        epilogues: what runs on each tile of results while it is in registers.
        between: the buffers that only hand results to another one of the ops: nothing is stored there.
        prologues: what computes, for a row reduction, the elements that it reads.
        pads: the inputs that are read where they are not padded yet.
    """

    initials: dict[int, ir.Value] = field(default_factory=dict)
    epilogues: tuple[LinalgOp, ...] = ()
    between: frozenset[ir.Value] = frozenset()
    prologues: tuple[LinalgOp, ...] = ()
    pads: Mapping[int, Pad] = field(default_factory=dict)


class NestEmitter:
    """Writes the loops of one op at the insertion point.

    Attributes:
        tile_type: what loads and computes a tile of the op itself.
        long_sums_in_blocks: whether sums are so exact that the length of a chain of additions matters.
        reads_pads: whether what is padded can be read without its pad.
    """

    tile_type: ClassVar[type[RegisterTile]] = RegisterTile
    long_sums_in_blocks: ClassVar[bool] = True
    reads_pads: ClassVar[bool] = True

    def __init__(self, view: LinalgOp, tile: TileSizes, fma: bool, context: Context):
        sums = multiply_adds(view) if fma else MultiplyAdds({}, set())
        self.view = view
        self.tile = tile
        self.context = context
        self.stage = TiledOp(view, tile, sums, context.pads)
        self._unrolled = window_unrolling.unrolled(view, tile)
        self.blocks = self._blocks_of_sums() if self.long_sums_in_blocks else None

    @classmethod
    def remark(cls, view: LinalgOp, tile: TileSizes) -> str:
        """What the pass's remark says of the loops of an op."""
        return ""

    def emit(self) -> None:
        """The whole nest."""
        self._emit_loops(loop_order(self.view, self.tile), TilePosition())

    def _emit_loops(self, order: Sequence[Loops], position: TilePosition) -> None:
        """The loops in that order, around the tiles."""
        if not order:
            self._tile(position)
            return
        emitters: dict[Loops, Callable[[TilePosition, EmitTiles], None]]
        emitters = {"rows": self._rows, "vectors": self._vectors, "outer": self.nest}
        emitters[order[0]](position, lambda inside: self._emit_loops(order[1:], inside))

    def nest(self, position: TilePosition, inner: EmitTiles) -> None:
        """The loops that are neither along the rows nor along the vectors of tiles."""

        def level(depth: int, position: TilePosition) -> None:
            if depth == len(self.tile.outer):
                inner(position)
                return
            dim = self.tile.outer[depth]
            parallel_loop(as_index(0), self.size(dim), 1, lambda i: level(depth + 1, position.inside(dim, i)))

        level(0, position)

    def _vectors(self, position: TilePosition, inner: EmitTiles) -> None:
        """The loop along vectors; elementwise ops have the numbers that are the same for all of them loaded before."""
        if any(self.view.reductions):
            self._along_vectors(position, inner)
            return
        stage = self.stage
        self.stage = with_numbers(stage, position)
        self._along_vectors(position, inner)
        self.stage = stage

    def _along_vectors(self, position: TilePosition, inner: EmitTiles) -> None:
        """Full tiles, then the rest: exactly as many vectors as it needs, the last one masked."""
        dim, lanes = self.tile.vector_dim, self.tile.lanes

        def part(vectors: int, mask: ir.Value | None = None) -> Callable[[ir.Value], None]:
            return lambda i: inner(position.with_vectors(dim, i, vectors, mask))

        step = self.tile.vectors * lanes
        size = self.view.sizes[dim]
        if size is None:
            total = self.size(dim)
            full = floor_to(total, step)
            self.full_tiles(position, full, inner)
            if self.tile.single_edges:
                with self._single():
                    parallel_loop(full, total, 1, part(1))
                return
            parallel_loop(full, total, lanes, lambda i: part(1, arith.SubIOp(total, i).result)(i))
            return
        full = size // step * step
        if full:
            self.full_tiles(position, as_index(full), inner)
        if full < size and self.tile.single_edges and size % lanes:
            whole = size // lanes * lanes
            if full < whole:
                part((whole - full) // lanes)(as_index(full))
            with self._single():
                parallel_loop(as_index(whole), as_index(size), 1, part(1))
        elif full < size:
            rest = size - full
            mask = as_index(rest % lanes) if rest % lanes else None
            part(-(-rest // lanes), mask)(as_index(full))

    def full_tiles(self, position: TilePosition, end: ir.Value, inner: EmitTiles) -> None:
        """The tiles with all of their vectors, of the elements from the first to before `end`."""
        dim, vectors, step = self.tile.vector_dim, self.tile.vectors, self.tile.vectors * self.tile.lanes
        parallel_loop(as_index(0), end, step, lambda i: inner(position.with_vectors(dim, i, vectors, None)))

    @contextlib.contextmanager
    def _single(self) -> Iterator[None]:
        """Vectors of one element; of what is transposed, one by one."""
        tile, stage = self.tile, self.stage
        operands = range(len(self.view.maps))
        crosses = any(crosses_vectors(self.view, number, tile.vector_dim, tile.row_dim) for number in operands)
        self.tile = replace(tile, vectors=1, lanes=1, rows=1 if crosses else tile.rows)
        self.stage = replace(stage, tile=self.tile)
        yield
        self.tile, self.stage = tile, stage

    def _rows(self, position: TilePosition, inner: EmitTiles) -> None:
        """Full tiles, then the rows that are left."""
        dim, rows = self.tile.row_dim, self.tile.rows
        if dim is None:
            inner(position)
            return

        def part(rows: int) -> Callable[[ir.Value], None]:
            return lambda i: inner(position.with_rows(dim, i, rows))

        size = self.view.sizes[dim]
        if size is None:
            total = self.size(dim)
            full = floor_to(total, rows)
            parallel_loop(as_index(0), full, rows, part(rows))
            parallel_loop(full, total, 1, part(1))
            return
        full = size // rows * rows
        if full:
            parallel_loop(as_index(0), as_index(full), rows, part(rows))
        if full < size:
            part(size - full)(as_index(full))

    def _tile(self, position: TilePosition) -> None:
        """A tile; of what is padded in two forms, one of which is for tiles that are inside."""
        inside = tile_is_inside(self.view, self.tile, position, self.stage.pads) if self.stage.pads else None
        if inside is None:
            self._computed_tile(position, self.stage)
            return
        branch = scf.IfOp(inside, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            self._computed_tile(position, self.stage.within_pads())
            scf.YieldOp([])
        with ir.InsertionPoint(branch.else_block):
            self._computed_tile(position, self.stage)
            scf.YieldOp([])

    def _computed_tile(self, position: TilePosition, stage: TiledOp) -> None:
        """Loads the accumulators, runs the reductions on them and the epilogues on the results, stores these."""
        registers = self.tile_type(stage, position)
        self.finish(registers, self.reduction(0, registers, dict(position.at), self.starts(registers)))

    def starts(self, registers: RegisterTile) -> list[ir.Value]:
        """What the vectors of a tile start from, output by output."""
        position = registers.position
        return [
            self.start(registers, output, dict(position.at), row, column)
            for output in self.view.outputs
            for row in range(position.rows)
            for column in range(position.vectors)
        ]

    def finish(self, registers: RegisterTile, results: list[ir.Value]) -> None:
        """Runs the epilogues on the results of a tile, and stores what is needed."""
        position, known = registers.position, dict[ir.Value, list[ir.Value]]()
        self.store(registers, results, known)
        for epilogue in self.context.epilogues:
            stage = TiledOp(epilogue, self.tile, MultiplyAdds({}, set()))
            behind = RegisterTile(stage, position)
            self.store(behind, behind.compute(dict(position.at), [], known), known)

    def finish_if(self, closes: ir.Value, registers: RegisterTile, results: list[ir.Value]) -> None:
        """`finish` behind the last block of a sum; before it what there is of the sum lies in the result."""
        if not (self.context.epilogues or self.context.between):
            NestEmitter.finish(self, registers, results)
            return
        branch = scf.IfOp(closes, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            NestEmitter.finish(self, registers, results)
            scf.YieldOp([])
        with ir.InsertionPoint(branch.else_block):
            registers.store_all(results, self.view.outputs[0])
            scf.YieldOp([])

    def start(self, registers: RegisterTile, output: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """What a vector of an output starts from."""
        if output not in self.context.initials:
            return registers.load(output, at, row, column)
        number = narrow_elements.number(self.context.initials[output])
        return vector.BroadcastOp(ir.VectorType.get([self.tile.lanes], number.type), number).result

    def store(self, registers: RegisterTile, results: list[ir.Value], known: dict[ir.Value, list[ir.Value]]) -> None:
        """Stores what a stage has computed, if anything but an epilogue needs it."""
        stage = registers.stage
        count = len(results) // len(stage.view.outputs)
        for number, output in enumerate(stage.view.outputs):
            vectors = results[number * count : (number + 1) * count]
            known[stage.view.operands[output]] = vectors
            if stage.view.operands[output] not in self.context.between:
                registers.store_all(vectors, output)

    def reduction(
        self, depth: int, registers: RegisterTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """The sums over the reductions from the one of that number on, added to `values`."""
        outer = self.view.summed[: len(self.view.summed) - len(self._unrolled)]
        if depth == len(outer) and self._unrolled:
            return registers.compute_taps(at, window_unrolling.taps(self.view, self._unrolled), values)
        if depth == len(outer):
            along_rows = self.tile.lane_dim is not None and self.tile.lane_dim == self.tile.row_dim
            return registers.compute_rows(at, values) if along_rows else registers.compute(at, values)
        dim = outer[depth]
        if self.view.sizes[dim] == 1:
            return self.reduction(depth + 1, registers, {**at, dim: as_index(0)}, values)

        def add(i: ir.Value, old: list[ir.Value]) -> list[ir.Value]:
            return self.reduction(depth + 1, registers, {**at, dim: i}, old)

        def add_several(i: ir.Value, old: list[ir.Value]) -> list[ir.Value]:
            here = {**at, dim: i, **{other: as_index(0) for other in outer[depth + 1 :]}}
            return registers.compute_steps(here, dim, old)

        def run(first: ir.Value, last: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            if self.tile.lane_dim != dim:
                return loop_with(first, last, 1, values, add)
            whole = self._has_whole_vectors(dim)
            full = last if whole else arith.AddIOp(first, floor_to(arith.SubIOp(last, first).result, lanes)).result
            values = loop_with(first, full, lanes, values, add_several)
            return values if whole else loop_with(full, last, 1, values, add)

        lanes = self.tile.lanes
        return self.in_blocks(depth, self._steps(dim, at), values, run)

    def _has_whole_vectors(self, dim: int) -> bool:
        """Whether the lanes of vectors along a sum are always full."""
        size, lanes = self.view.sizes[dim], self.tile.lanes
        return size is not None and size % lanes == 0 and taps_of_phase(self.view, dim) is None

    def in_blocks(
        self, depth: int, end: ir.Value, values: list[ir.Value], run: EmitLoop, step: int = 1
    ) -> list[ir.Value]:
        """The reduction of a number from 0 to `end`, in blocks if it is the one that is cut."""
        if self.blocks is not None and self.blocks.depth == depth:
            return self.blocks.run(end, values, run, step)
        return run(as_index(0), end, values)

    def _blocks_of_sums(self) -> Blocks | None:
        """Where the reductions are cut; what is unrolled stays whole."""
        blocks = blocks_of([self.view.sizes[dim] for dim in self.view.summed], fold_ops(self.view.op))
        if blocks is not None and self.view.summed[blocks.depth] == self.tile.lane_dim:
            blocks = in_whole_vectors(blocks, self.tile.lanes)
        return blocks if blocks is not None and blocks.depth < len(self.view.summed) - len(self._unrolled) else None

    def _steps(self, dim: int, at: dict[int, ir.Value]) -> ir.Value:
        """The number of iterations of a sum; those in which a weight is known to be zero are left out."""
        taps = taps_of_phase(self.view, dim)
        used = [loop for loop in range(self.view.loops) if taps is not None and coefficient(taps, loop) != 0]
        if taps is None or not set(used) <= set(self.tile.outer):
            return self.size(dim)
        values = [at[loop] if loop in used else as_index(0) for loop in range(self.view.loops)]
        return affine.AffineApplyOp(ir.AffineMap.get(len(values), 0, [taps]), values).result

    def size(self, dim: int) -> ir.Value:
        """The number of iterations of a loop."""
        known = self.view.sizes[dim]
        if known is not None:
            return as_index(known)
        operand, position = self.view.bounds[dim]
        return memref.DimOp(self.view.operands[operand], as_index(position)).result


def with_numbers(stage: TiledOp, position: TilePosition) -> TiledOp:
    """An op with the inputs that are one number in all loops inside of a position, loaded there."""
    return replace(stage, loaded=RegisterTile(stage, position).fixed_numbers())


def loop_with(
    first: ir.Value,
    last: ir.Value,
    step: int,
    values: list[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """A loop that hands on values."""
    loop = scf.ForOp(first, last, as_index(step), values)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(body(loop.induction_variable, list(loop.inner_iter_args)))
    return list(loop.results)
