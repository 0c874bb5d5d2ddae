"""Writes what a warp does for a contraction on tensor cores; what map-to-threads emits.

As in shared_memory_matmul, a block computes a tile of the result and walks along the sum in steps, for each of which
its threads load a tile of both operands to shared memory. While one step is computed, the next two or three are under
way to other tiles: by cp.async, 16 bytes at a time and zeros outside, where an operand allows it. A warp computes its
part with mma.sync: of 16-bit floats on fragments of 16 x 16 and 16 x 8, which ldmatrix loads; of float32 as tf32, whose
products have 10 bits of mantissa, on fragments of 16 x 8 and 8 x 8. Accumulators are f32 and stay in registers, where
the ops behind the product find them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.ir.constants import as_index
from pipeline.mlir import arith, defining_op, gpu, ir, nvgpu, scf, vector
from pipeline.passes.gpu.matmul.mma_operands import OF_16_BITS, OF_TF32, Block, MmaForm, Operand
from pipeline.passes.gpu.matmul.shared_memory_matmul import Side, Split
from pipeline.passes.gpu.thread.thread_results import Results, unravel
from pipeline.passes.gpu.thread.warp_reduction import WARP

_MOST_BLOCKS = 65535

#: What a block may share without asking the driver for more, and how many steps of the sum it holds at most.
_MOST_SHARED, _MOST_STAGES = 48 * 1024, 4

#: Blocks of the large tile are for results that have work for most of a GPU.
_ENOUGH_BLOCKS = 64


@dataclass(frozen=True)
class MatmulTile:
    """What a block computes: `rows` x `columns`, by `warps[0]` x `warps[1]` warps."""

    rows: int
    columns: int
    warps: tuple[int, int]

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.warps[0] * self.warps[1] * WARP

    def stages(self, form: MmaForm) -> int:
        """How many steps of the sum are in shared memory: one that is computed, the others under way."""
        step = (self.rows + self.columns) * form.step * 16 // form.chunk
        return min(_MOST_STAGES, _MOST_SHARED // step)

    def blocks(self, split: Split) -> int:
        """How many tiles the result has."""
        return split.size_of(split.batch) * -(-split.rows.size // self.rows) * -(-split.columns.size // self.columns)


_LARGE, _SMALL = MatmulTile(128, 128, (2, 4)), MatmulTile(64, 64, (2, 2))


def choose_form(generic: ir.Operation, start: ir.Value | None, tf32: bool) -> MmaForm | None:
    """None where the op is no sum from 0 on, in float32, of products of two numbers of a type that tensor cores take.

    Those are bfloat16, float16 and, with `tf32`, float32.
    """
    if not _is_zero(start):
        return None
    element = generic.regions[0].blocks[0].arguments[0].type
    if isinstance(element, (ir.F16Type, ir.BF16Type)):
        return OF_16_BITS if _is_sum_of_products(generic, ("arith.extf", "arith.extf")) else None
    return OF_TF32 if tf32 and isinstance(element, ir.F32Type) and _is_sum_of_products(generic, ()) else None


def choose_tile(split: Split) -> MatmulTile | None:
    """None where there would be too many blocks."""
    tile = _LARGE if _LARGE.blocks(split) >= _ENOUGH_BLOCKS else _SMALL
    return tile if tile.blocks(split) <= _MOST_BLOCKS else None


def _is_zero(start: ir.Value | None) -> bool:
    op = None if start is None else defining_op(start)
    if op is None or op.name != "arith.constant":
        return False
    value = op.attributes["value"]
    return isinstance(value, ir.FloatAttr) and value.value == 0.0


def _is_sum_of_products(generic: ir.Operation, casts: tuple[str, ...]) -> bool:
    """out + a * b in float32, with these casts of a and b"""
    block = generic.regions[0].blocks[0]
    left, right, out = block.arguments
    *ops, terminator = [op.operation for op in block.operations]
    if left.type != right.type or not isinstance(out.type, ir.F32Type):
        return False
    if sorted(op.name for op in ops) != ["arith.addf", *casts, "arith.mulf"]:
        return False
    total = defining_op(terminator.operands[0])
    if total is None or total.name != "arith.addf" or out not in list(total.operands):
        return False
    products = [op for op in map(defining_op, total.operands) if op is not None and op.name == "arith.mulf"]
    factors = [value for product in products for value in product.operands]
    sources = [value.owner.operands[0] for value in factors] if casts else factors
    return all(isinstance(value, ir.BlockArgument) for value in sources) and sorted(map(_number_of, sources)) == [0, 1]


def _number_of(value: ir.Value) -> int:
    return ir.BlockArgument(value).arg_number


class TensorCoreEmitter:
    """Writes the kernel at the insertion point: the op that `results` is of, and what is done with its results."""

    def __init__(self, results: Results, split: Split, tile: MatmulTile, form: MmaForm):
        self.results = results
        self.split = split
        self.tile = tile
        self.form = form
        self.total = split.size_of(split.sums)
        thread = gpu.ThreadIdOp(gpu.Dimension.x).result
        self.thread = thread
        self.lane = arith.RemUIOp(thread, as_index(WARP)).result
        warp = arith.DivUIOp(thread, as_index(WARP)).result
        down, across = unravel(warp, [tile.warps[0], tile.warps[1]])
        self.warp_rows, self.warp_columns = tile.rows // tile.warps[0], tile.columns // tile.warps[1]
        self.row = arith.MulIOp(down, as_index(self.warp_rows)).result
        self.column = arith.MulIOp(across, as_index(self.warp_columns)).result
        sides = ((split.rows, tile.rows), (split.columns, tile.columns))
        self.block = Block(thread, tile.threads)
        self.stages = tile.stages(form)
        self.operands = [self._operand(side, length) for side, length in sides]
        self._place_block()

    def _operand(self, side: Side, length: int) -> Operand:
        return Operand(self.results, self.split, side, length, self.block, self.form, self.stages)

    def _place_block(self) -> None:
        """Which tile of the result the block computes, and the indices of the batch."""
        batch, row, column = self._places()
        for operand, place in zip(self.operands, (row, column), strict=True):
            operand.first = arith.MulIOp(place, as_index(operand.length)).result
        sizes = [self.split.sizes[dim] for dim in self.split.batch]
        self.batch = dict(zip(self.split.batch, unravel(batch, sizes), strict=True))
        for operand in self.operands:
            operand.batch = self.batch

    def _places(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Which product of the batch the block computes, and which row and column of tiles."""
        counts = [-(-operand.side.size // operand.length) for operand in self.operands]
        block = gpu.BlockIdOp(gpu.Dimension.x).result
        batch, row, column = unravel(block, [self.split.size_of(self.split.batch), *counts])
        return batch, row, column

    def emit(self) -> None:
        """Everything."""
        steps = -(-self.total // self.form.step)
        kind = ir.VectorType.get([2, 2], ir.F32Type.get())
        nothing = arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get_f32(0.0))).result
        count = (self.warp_rows // 16) * (self.warp_columns // 8)
        token = None
        for number in range(self.stages - 1):
            token = self._fetch(as_index(number), as_index(number), steps)
        walk = scf.ForOp(
            as_index(0), as_index(steps), as_index(1), [as_index(0), as_index(self.stages - 1), *([nothing] * count)]
        )
        with ir.InsertionPoint(walk.body):
            step, (current, target, *sums) = walk.induction_variable, list(walk.inner_iter_args)
            if token is not None:
                nvgpu.DeviceAsyncWaitOp(token, numGroups=self.stages - 2)
            gpu.BarrierOp()
            self._fetch(arith.AddIOp(step, as_index(self.stages - 1)).result, target, steps)
            sums = self._multiply(current, sums)
            scf.YieldOp([self._following(current), self._following(target), *sums])
        self._write(list(walk.results)[2:])

    def _following(self, stage: ir.Value) -> ir.Value:
        """The tile after this one, around."""
        next_stage = arith.AddIOp(stage, as_index(1)).result
        is_end = arith.CmpIOp(arith.CmpIPredicate.eq, next_stage, as_index(self.stages)).result
        return arith.SelectOp(is_end, as_index(0), next_stage).result

    def _fetch(self, step: ir.Value, buffer: ir.Value, steps: int) -> ir.Value | None:
        """Loads a step of both operands to shared memory if there is one; returns what to wait for, if anything.

        A group of copies is made in any case, so that waiting can go by their number.
        """
        more = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, step, as_index(steps)).result)
        with ir.InsertionPoint(more.then_block):
            first = arith.MulIOp(step, as_index(self.form.step)).result
            for operand in self.operands:
                operand.fetch(first, buffer)
            scf.YieldOp([])
        return nvgpu.DeviceAsyncCreateGroupOp([]).result if any(operand.is_wide for operand in self.operands) else None

    def _multiply(self, buffer: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """The warp's part of the tile for one step."""
        rows, columns = self.operands
        shape = [16, 8, self.form.depth]
        tf32 = True if self.form == OF_TF32 else None
        for depth in range(0, self.form.step, self.form.depth):
            left = [rows.left(buffer, self.row, 16 * i, depth) for i in range(self.warp_rows // 16)]
            right: list[ir.Value] = []
            for j in range(self.warp_columns // 16):
                right += columns.right(buffer, self.column, 16 * j, depth)
            pairs = [(a, b) for a in left for b in right]
            sums = [
                nvgpu.MmaSyncOp(total.type, a, b, total, shape, tf32Enabled=tf32).result
                for (a, b), total in zip(pairs, sums, strict=True)
            ]
        return sums

    def _write(self, sums: list[ir.Value]) -> None:
        across = self.warp_columns // 8
        for number, value in enumerate(sums):
            parts = [[vector.ExtractOp(value, [], [half, side]).result for side in range(2)] for half in range(2)]
            self._write_part(*divmod(number, across), parts)

    def _write_part(self, i: int, j: int, parts: list[list[ir.Value]]) -> None:
        """What becomes of the thread's elements of a fragment of 16 x 8: two neighbours in each of two rows."""
        own_row = arith.AddIOp(self.row, arith.DivUIOp(self.lane, as_index(4)).result).result
        pair = arith.MulIOp(arith.RemUIOp(self.lane, as_index(4)).result, as_index(2)).result
        own_column = arith.AddIOp(self.column, pair).result
        for half, neighbours in enumerate(parts):
            row = arith.AddIOp(own_row, as_index(16 * i + 8 * half)).result
            columns = [arith.AddIOp(own_column, as_index(8 * j + side)).result for side in range(2)]
            points = [((row, column), value) for column, value in zip(columns, neighbours, strict=True)]
            # Of an even number of columns, both are inside of the result, or neither is.
            for together in [points] if self.split.columns.size % 2 == 0 else [[point] for point in points]:
                self._write_points(together)

    def _write_points(self, points: list[tuple[tuple[ir.Value, ir.Value], ir.Value]]) -> None:
        """What becomes of elements, all of them if the first is inside of the result."""
        inside: ir.Value | None = None
        written = []
        for number, (places, value) in enumerate(points):
            at = dict(self.batch)
            for operand, place in zip(self.operands, places, strict=True):
                whole = arith.AddIOp(operand.first, place).result
                at |= operand.at(whole)
                if operand.side.size % operand.length and number == 0:
                    fits = arith.CmpIOp(arith.CmpIPredicate.ult, whole, as_index(operand.side.size)).result
                    inside = fits if inside is None else arith.AndIOp(inside, fits).result
            written.append((at, [value]))
        if inside is None:
            self.results.write_together(written)
            return
        branch = scf.IfOp(inside)
        with ir.InsertionPoint(branch.then_block):
            self.results.write_together(written)
            scf.YieldOp([])
