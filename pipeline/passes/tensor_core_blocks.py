"""Writes what a warp does for a contraction on tensor cores; what map-to-threads emits.

As in contraction_blocks, a block computes a tile of the result and walks along the sum in steps, for each of which its
threads load a tile of both operands to shared memory. While one step is computed, the next one is loaded to a second
tile: by cp.async, 16 bytes at a time and zeros outside, where an operand allows it. A warp computes its part with
mma.sync: of 16-bit floats on fragments of 16 x 16 and 16 x 8, which ldmatrix loads; of float32 as tf32, whose products
have 10 bits of mantissa, on fragments of 16 x 8 and 8 x 8. Accumulators are f32 and stay in registers, where the ops
behind the product find them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.access import Loops, coefficient
from pipeline.mlir import arith, defining_op, gpu, ir, memref, nvgpu, scf, vector
from pipeline.passes.block_plan import is_aligned
from pipeline.passes.contraction_blocks import Side, Split, loops_in
from pipeline.passes.thread_results import Results, index, indices, load, unravel, zero

_WARP = 32

_MOST_BLOCKS = 65535

#: Blocks of the large tile are for results that have work for most of a GPU.
_ENOUGH_BLOCKS = 64


@dataclass(frozen=True)
class Tile:
    """What a block computes: `rows` x `columns`, by `warps[0]` x `warps[1]` warps."""

    rows: int
    columns: int
    warps: tuple[int, int]

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.warps[0] * self.warps[1] * _WARP

    def blocks(self, split: Split) -> int:
        """How many tiles the result has."""
        return split.size_of(split.batch) * -(-split.rows.size // self.rows) * -(-split.columns.size // self.columns)


_LARGE, _SMALL = Tile(128, 128, (2, 4)), Tile(64, 64, (2, 2))


@dataclass(frozen=True)
class Form:
    """How elements of a type are multiplied.

    Attributes:
        step: how far a block goes along the sum at a time.
        depth: how far one instruction goes.
        chunk: how many elements 16 bytes hold.
        padding: how much longer rows are in shared memory than the tile, along the sum and across, so that what a warp
            loads at a time lies in different banks.
    """

    step: int
    depth: int
    chunk: int
    padding: tuple[int, int]


_OF_16_BITS, _OF_TF32 = Form(32, 16, 8, (8, 8)), Form(16, 8, 4, (4, 8))


def choose_form(generic: ir.Operation, start: ir.Value | None, tf32: bool) -> Form | None:
    """None where the op is no sum from 0 on, in float32, of products of two numbers of a type that tensor cores take.

    Those are bfloat16, float16 and, with `tf32`, float32.
    """
    if not _is_zero(start):
        return None
    element = generic.regions[0].blocks[0].arguments[0].type
    if isinstance(element, (ir.F16Type, ir.BF16Type)):
        return _OF_16_BITS if _is_sum_of_products(generic, ("arith.extf", "arith.extf")) else None
    return _OF_TF32 if tf32 and isinstance(element, ir.F32Type) and _is_sum_of_products(generic, ()) else None


def choose_tile(split: Split) -> Tile | None:
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
    return all(isinstance(one, ir.BlockArgument) for one in sources) and sorted(map(_number_of, sources)) == [0, 1]


def _number_of(value: ir.Value) -> int:
    return ir.BlockArgument(value).arg_number


class Emitter:
    """Writes the kernel at the insertion point: the op that `results` is of, and what is done with its results."""

    def __init__(self, results: Results, split: Split, tile: Tile, form: Form):
        self.results = results
        self.split = split
        self.tile = tile
        self.form = form
        self.total = split.size_of(split.sums)
        thread = gpu.ThreadIdOp(gpu.Dimension.x).result
        self.thread = thread
        self.lane = arith.RemUIOp(thread, index(_WARP)).result
        warp = arith.DivUIOp(thread, index(_WARP)).result
        down, across = unravel(warp, [tile.warps[0], tile.warps[1]])
        self.warp_rows, self.warp_columns = tile.rows // tile.warps[0], tile.columns // tile.warps[1]
        self.row = arith.MulIOp(down, index(self.warp_rows)).result
        self.column = arith.MulIOp(across, index(self.warp_columns)).result
        self.element = ir.MemRefType(results.anchor.operands[0].type).element_type
        self.operands = [_Operand(self, split.rows, tile.rows), _Operand(self, split.columns, tile.columns)]
        self._place_block()

    def _place_block(self) -> None:
        """Which tile of the result the block computes, and the indices of the batch."""
        counts = [-(-self.split.rows.size // self.tile.rows), -(-self.split.columns.size // self.tile.columns)]
        block = gpu.BlockIdOp(gpu.Dimension.x).result
        batch, row, column = unravel(block, [self.split.size_of(self.split.batch), *counts])
        for operand, place in zip(self.operands, (row, column), strict=True):
            operand.first = arith.MulIOp(place, index(operand.length)).result
        sizes = [self.split.sizes[dim] for dim in self.split.batch]
        self.batch = dict(zip(self.split.batch, unravel(batch, sizes), strict=True))

    def emit(self) -> None:
        """Everything."""
        steps = -(-self.total // self.form.step)
        kind = ir.VectorType.get([2, 2], ir.F32Type.get())
        nothing = arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get_f32(0.0))).result
        count = (self.warp_rows // 16) * (self.warp_columns // 8)
        token = self._fetch(index(0), index(0))
        walk = scf.ForOp(index(0), index(steps), index(1), [nothing] * count)
        with ir.InsertionPoint(walk.body):
            step = walk.induction_variable
            current = arith.RemUIOp(step, index(2)).result
            if token is not None:
                nvgpu.DeviceAsyncWaitOp(token, numGroups=0)
            gpu.BarrierOp()
            following = arith.AddIOp(step, index(1)).result
            more = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, following, index(steps)).result)
            with ir.InsertionPoint(more.then_block):
                self._fetch(following, arith.SubIOp(index(1), current).result)
                scf.YieldOp([])
            scf.YieldOp(self._multiply(current, list(walk.inner_iter_args)))
        self._write(list(walk.results))

    def _fetch(self, step: ir.Value, buffer: ir.Value) -> ir.Value | None:
        """Loads a step of both operands to shared memory; returns what to wait for, if something is under way."""
        first = arith.MulIOp(step, index(self.form.step)).result
        tokens = [token for operand in self.operands for token in operand.fetch(first, buffer)]
        return nvgpu.DeviceAsyncCreateGroupOp(tokens).result if tokens else None

    def _multiply(self, buffer: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """The warp's part of the tile for one step."""
        rows, columns = self.operands
        shape = [16, 8, self.form.depth]
        tf32 = True if self.form == _OF_TF32 else None
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
        """What becomes of each element that the thread has: two neighbours in each of two rows of a fragment."""
        own_row = arith.AddIOp(self.row, arith.DivUIOp(self.lane, index(4)).result).result
        pair = arith.MulIOp(arith.RemUIOp(self.lane, index(4)).result, index(2)).result
        own_column = arith.AddIOp(self.column, pair).result
        across = self.warp_columns // 8
        for number, value in enumerate(sums):
            i, j = divmod(number, across)
            for half in range(2):
                for side in range(2):
                    places = (
                        arith.AddIOp(own_row, index(16 * i + 8 * half)).result,
                        arith.AddIOp(own_column, index(8 * j + side)).result,
                    )
                    self._write_one(places, vector.ExtractOp(value, [], [half, side]).result)

    def _write_one(self, places: tuple[ir.Value, ir.Value], value: ir.Value) -> None:
        at, inside = dict(self.batch), None
        for operand, place in zip(self.operands, places, strict=True):
            whole = arith.AddIOp(operand.first, place).result
            at |= operand.at(whole)
            if operand.side.size % operand.length:
                fits = arith.CmpIOp(arith.CmpIPredicate.ult, whole, index(operand.side.size)).result
                inside = fits if inside is None else arith.AndIOp(inside, fits).result
        if inside is None:
            self.results.write(at, [value])
            return
        branch = scf.IfOp(inside)
        with ir.InsertionPoint(branch.then_block):
            self.results.write(at, [value])
            scf.YieldOp([])


class _Operand:
    """An operand's tiles in shared memory: with the sum along rows, if its last dim moves with that, or across."""

    first: ir.Value

    def __init__(self, emitter: Emitter, side: Side, length: int):
        self.emitter = emitter
        self.side = side
        self.length = length
        self.loops: Loops = emitter.results.loops
        self.buffer = emitter.results.anchor.operands[side.operand]
        moving = loops_in(self.loops.maps[side.operand], last=True)
        self.along_sum = not any(dim in moving for dim in side.dims)
        self.form = emitter.form
        self.shape = (length, self.form.step) if self.along_sum else (self.form.step, length)
        self.is_wide = self._can_be_wide()
        space = ir.Attribute.parse("#gpu.address_space<workgroup>")
        row = self.shape[1] + self.form.padding[0 if self.along_sum else 1]
        kind = ir.MemRefType.get([2, self.shape[0], row], emitter.element, memory_space=space)
        self.shared = memref.AllocOp(kind, [], [], alignment=16).result

    def _can_be_wide(self) -> bool:
        """Whether 16 bytes of a row of the tile are side by side in memory, at a multiple of 16 bytes."""
        dims = self.emitter.split.sums if self.along_sum else self.side.dims
        indexing = self.loops.maps[self.side.operand]
        *outer, last = indexing.results
        if not dims or last != ir.AffineDimExpr.get(dims[-1]) or self.emitter.split.sizes[dims[-1]] % self.form.chunk:
            return False
        return all(coefficient(one, dims[-1]) == 0 for one in outer) and is_aligned(self.buffer, self.form.chunk)

    def at(self, place: ir.Value) -> dict[int, ir.Value]:
        """The counters of the side's own loops."""
        sizes = [self.emitter.split.sizes[dim] for dim in self.side.dims]
        return dict(zip(self.side.dims, unravel(place, sizes), strict=True))

    def fetch(self, first: ir.Value, buffer: ir.Value) -> Sequence[ir.Value]:
        """Loads the tile from step `first` of the sum on; returns what is under way."""
        if not self.is_wide:
            self._fetch_elements(first, buffer)
            return []
        chunks = self.shape[0] * self.shape[1] // self.form.chunk
        return [self._fetch_chunk(first, buffer, n) for n in range(chunks // self.emitter.tile.threads)]

    def _fetch_chunk(self, first: ir.Value, buffer: ir.Value, number: int) -> ir.Value:
        one = arith.AddIOp(self.emitter.thread, index(number * self.emitter.tile.threads)).result
        outer, chunk = unravel(one, [self.shape[0], self.shape[1] // self.form.chunk])
        inner = arith.MulIOp(chunk, index(self.form.chunk)).result
        at, inside = self._counters(first, outer, inner)
        size = arith.SelectOp(inside, index(self.form.chunk), index(0)).result
        token = ir.Type.parse("!nvgpu.device.async.token")
        places = self._places(at)
        target = [buffer, outer, inner]
        return nvgpu.DeviceAsyncCopyOp(
            self.shared, target, self.buffer, places, self.form.chunk, srcElements=size, bypassL1=True, results=[token]
        ).result

    def _fetch_elements(self, first: ir.Value, buffer: ir.Value) -> None:
        """One by one; elements outside are 0, for what a sum takes from beyond its end must not be NaN."""
        loop = scf.ForOp(self.emitter.thread, index(self.shape[0] * self.shape[1]), index(self.emitter.tile.threads))
        with ir.InsertionPoint(loop.body):
            outer, inner = unravel(loop.induction_variable, list(self.shape))
            at, inside = self._counters(first, outer, inner)
            value = load(self.buffer, self.loops.maps[self.side.operand], at)
            chosen = arith.SelectOp(inside, value, zero(self.emitter.element)).result
            memref.StoreOp(chosen, self.shared, [buffer, outer, inner])
            scf.YieldOp([])

    def _counters(self, first: ir.Value, outer: ir.Value, inner: ir.Value) -> tuple[dict[int, ir.Value], ir.Value]:
        """The loop counters of an element of the tile, clamped into the operand, and whether it lies inside."""
        place, step = (outer, inner) if self.along_sum else (inner, outer)
        split = self.emitter.split
        own, in_sum = arith.AddIOp(self.first, place).result, arith.AddIOp(first, step).result
        at, inside = dict(self.emitter.batch), []
        for dims, number, size in ((self.side.dims, own, self.side.size), (split.sums, in_sum, self.emitter.total)):
            inside.append(arith.CmpIOp(arith.CmpIPredicate.ult, number, index(size)).result)
            clamped = arith.SelectOp(inside[-1], number, index(0)).result
            at |= dict(zip(dims, unravel(clamped, [split.sizes[dim] for dim in dims]), strict=True))
        return at, arith.AndIOp(*inside).result

    def _places(self, at: dict[int, ir.Value]) -> list[ir.Value]:
        return indices(self.loops.maps[self.side.operand], at)

    def left(self, buffer: ir.Value, own: ir.Value, place: int, depth: int) -> ir.Value:
        """The left fragment from a place along the operand's own loops, and in the step, on."""
        if self.form == _OF_TF32:
            return self._words(
                buffer, own, [(place, depth), (place + 8, depth), (place, depth + 4), (place + 8, depth + 4)]
            )
        return self._matrices(buffer, own, place, depth, is_right=False)

    def right(self, buffer: ir.Value, own: ir.Value, place: int, depth: int) -> list[ir.Value]:
        """Two right fragments, side by side."""
        if self.form == _OF_TF32:
            return [self._words(buffer, own, [(one, depth), (one, depth + 4)]) for one in (place, place + 8)]
        pair = self._matrices(buffer, own, place, depth, is_right=True)
        return [_half(pair, 0), _half(pair, 1)]

    def _words(self, buffer: ir.Value, own: ir.Value, starts: Sequence[tuple[int, int]]) -> ir.Value:
        """A fragment of float32: thread l has place l / 4 and depth l % 4 from each start on."""
        lane = self.emitter.lane
        places = arith.AddIOp(own, arith.DivUIOp(lane, index(4)).result).result
        depths = arith.RemUIOp(lane, index(4)).result
        words = []
        for place, depth in starts:
            at = [arith.AddIOp(places, index(place)).result, arith.AddIOp(depths, index(depth)).result]
            words.append(memref.LoadOp(self.shared, [buffer, *(at if self.along_sum else at[::-1])]).result)
        kind = ir.VectorType.get([len(words), 1], self.emitter.element)
        return vector.FromElementsOp(kind, words).result

    def _matrices(self, buffer: ir.Value, own: ir.Value, place: int, depth: int, is_right: bool) -> ir.Value:
        """16 x 16 elements as ldmatrix's four matrices of 8 x 8, in the order of a left or of two right fragments.

        Lane l names row l % 8 of matrix l / 8. A left fragment has the rows' halves first, then those of the sum; of
        two right ones each has the halves of the sum.
        """
        lane = self.emitter.lane
        eighth = arith.RemUIOp(lane, index(8)).result
        second = arith.RemUIOp(arith.DivUIOp(lane, index(8)).result, index(2)).result
        fourth = arith.DivUIOp(lane, index(16)).result
        by_place, by_depth = (fourth, second) if is_right else (second, fourth)
        places, depths = (arith.MulIOp(half, index(8)).result for half in (by_place, by_depth))
        if self.along_sum:
            places = arith.AddIOp(places, eighth).result
        else:
            depths = arith.AddIOp(depths, eighth).result
        places = arith.AddIOp(arith.AddIOp(own, places).result, index(place)).result
        depths = arith.AddIOp(depths, index(depth)).result
        at = [places, depths] if self.along_sum else [depths, places]
        kind = ir.VectorType.get([4, 2], self.emitter.element)
        return nvgpu.LdMatrixOp(kind, self.shared, [buffer, *at], not self.along_sum, 4).result


def _half(pair: ir.Value, number: int) -> ir.Value:
    """One of two right fragments."""
    kind = ir.VectorType.get([2, 2], ir.VectorType(pair.type).element_type)
    whole = ir.Operation.create("ub.poison", results=[kind]).result
    for row in range(2):
        whole = vector.InsertOp(vector.ExtractOp(pair, [], [2 * number + row]), whole, [], [row]).result
    return whole
