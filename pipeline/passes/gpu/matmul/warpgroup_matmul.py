"""Writes what a warpgroup does for a contraction on sm_90a's tensor cores; what map-to-threads emits.

As in tensor_core_matmul, a block computes a tile of the result in steps along the sum. Here the tiles of the operands
are what wgmma reads itself, so that a step costs a few instructions of each warpgroup. In shared memory there is a ring
of steps: two that are multiplied, the rest under way. A step's products are started before those of the step before
have been waited for, so that tensor cores always have work.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.ir.constants import as_index, zero
from pipeline.mlir import arith, gpu, ir, nvgpu, scf
from pipeline.passes.gpu.matmul import warpgroup_mma
from pipeline.passes.gpu.matmul.mma_operands import OF_16_BITS, MmaForm, Operand, allocate_shared
from pipeline.passes.gpu.matmul.shared_memory_matmul import Side, Split
from pipeline.passes.gpu.matmul.tensor_core_matmul import MatmulTile, TensorCoreEmitter
from pipeline.passes.gpu.matmul.warpgroup_mma import DEPTH, ROW, ROWS, WARPGROUP, TileLayout
from pipeline.passes.gpu.thread.thread_results import Results, unravel

_MOST_BLOCKS = 65535

#: How 16-bit floats are multiplied here: a step fills a row of a tile.
_FORM = MmaForm(ROW, DEPTH, OF_16_BITS.chunk)

#: The multiprocessors of the largest GPU of sm_90a: blocks beyond that wait for others.
_MULTIPROCESSORS = 132

#: How many tiles of a result lie below each other before the next column of tiles: blocks that run at the same time
#: read few rows and columns, which stay in the L2 cache.
_ROWS_OF_BLOCKS = 8


@dataclass(frozen=True)
class WarpgroupTile(MatmulTile):
    """What a block computes, with a warpgroup for each 64 rows.

    Attributes:
        steps: how many steps of the sum are in shared memory.
        cost: the time for each element of the result, relative to the largest tile's.
    """

    steps: int
    cost: float

    def stages(self, form: MmaForm) -> int:
        """See `MatmulTile`."""
        return self.steps

    def time(self, split: Split) -> float:
        """An estimate for the whole result, to compare tiles by."""
        waves = -(-self.blocks(split) // _MULTIPROCESSORS)
        return waves * self.rows * self.columns * self.cost


#: Smaller ones read more of shared memory for each product. What they cost was measured on an H100, at 4096 x 4096.
TILES = (
    WarpgroupTile(128, 256, (8, 1), 4, 1.0),
    WarpgroupTile(128, 128, (8, 1), 6, 1.19),
    WarpgroupTile(64, 128, (4, 1), 4, 1.43),
    WarpgroupTile(64, 64, (4, 1), 6, 2.07),
)


def choose_tile(split: Split) -> WarpgroupTile | None:
    """None where there would be too many blocks."""
    tiles = [tile for tile in TILES if tile.blocks(split) <= _MOST_BLOCKS]
    return min(tiles, key=lambda tile: tile.time(split), default=None)


class WarpgroupOperand(Operand):
    """An operand's tiles in shared memory, as wgmma reads them."""

    layout: TileLayout

    def _allocate(self, stages: int) -> ir.Value:
        self.layout = TileLayout(self.length, self.form.step, self.along_sum)
        return allocate_shared([stages, *self.layout.shape], self.element, warpgroup_mma.ALIGNMENT)

    def _swizzled(self, outer: ir.Value, inner: ir.Value) -> list[ir.Value]:
        return self.layout.place(outer, inner) if self.along_sum else self.layout.place(inner, outer)


class WarpgroupEmitter(TensorCoreEmitter):
    """Writes the kernel at the insertion point: the op that `results` is of, and what is done with its results."""

    def __init__(self, results: Results, split: Split, tile: WarpgroupTile):
        super().__init__(results, split, tile, _FORM)

    def _operand(self, side: Side, length: int) -> Operand:
        return WarpgroupOperand(self.results, self.split, side, length, self.block, self.form, self.stages)

    def _places(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        rows, columns = (-(-operand.side.size // operand.length) for operand in self.operands)
        block = gpu.BlockIdOp(gpu.Dimension.x).result
        batch, number = unravel(block, [self.split.size_of(self.split.batch), rows * columns])
        if rows <= _ROWS_OF_BLOCKS:
            column, row = unravel(number, [columns, rows])
            return batch, row, column
        group, inside = unravel(number, [-(-rows // _ROWS_OF_BLOCKS), _ROWS_OF_BLOCKS * columns])
        first = arith.MulIOp(group, as_index(_ROWS_OF_BLOCKS)).result
        height = as_index(_ROWS_OF_BLOCKS)
        if rows % _ROWS_OF_BLOCKS:
            height = arith.MinUIOp(arith.SubIOp(as_index(rows), first).result, height).result
        row = arith.AddIOp(first, arith.RemUIOp(inside, height).result).result
        return batch, row, arith.DivUIOp(inside, height).result

    def emit(self) -> None:
        """Everything."""
        steps = -(-self.total // self.form.step)
        ahead = self.stages - 2
        warpgroup = arith.DivUIOp(self.thread, as_index(WARPGROUP)).result
        self.first_row = arith.MulIOp(warpgroup, as_index(ROWS)).result
        nothing = [zero(ir.F32Type.get())] * (self.tile.columns // 2)
        token = None
        for number in range(ahead):
            token = self._fetch(as_index(number), as_index(number), steps)
        walk = scf.ForOp(as_index(0), as_index(steps), as_index(1), [as_index(0), as_index(ahead), *nothing])
        with ir.InsertionPoint(walk.body):
            step, (current, target, *sums) = walk.induction_variable, list(walk.inner_iter_args)
            if token is not None:
                nvgpu.DeviceAsyncWaitOp(token, numGroups=ahead - 1)
            warpgroup_mma.publish()
            gpu.BarrierOp()
            sums = self._multiply(current, sums)
            # All threads have waited for the step before the last one, whose place in the ring is free now.
            self._fetch(arith.AddIOp(step, as_index(ahead)).result, target, steps)
            warpgroup_mma.wait(1)
            scf.YieldOp([self._following(current), self._following(target), *sums])
        self._write_elements(warpgroup_mma.finish(list(walk.results)[2:]))

    def _multiply(self, buffer: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        rows, columns = self.operands
        assert isinstance(rows, WarpgroupOperand) and isinstance(columns, WarpgroupOperand)
        along_sum = (rows.along_sum, columns.along_sum)
        left = rows.layout.descriptor(rows.shared, buffer, self.first_row)
        right = columns.layout.descriptor(columns.shared, buffer)
        warpgroup_mma.fence()
        for depth in range(0, self.form.step, DEPTH):
            own = rows.layout.at_depth(left, depth), columns.layout.at_depth(right, depth)
            sums = warpgroup_mma.multiply(sums, *own, rows.element, along_sum)
        warpgroup_mma.commit()
        return sums

    def _write_elements(self, sums: list[ir.Value]) -> None:
        """The fragment's parts of 8 columns have two neighbours in each of two rows."""
        for number in range(0, len(sums), 4):
            self._write_part(0, number // 4, [sums[number : number + 2], sums[number + 2 : number + 4]])
