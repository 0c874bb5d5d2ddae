"""Writes how an operand of a product gets into shared memory and to tensor cores; see `tensor_core_matmul`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ir.constants import as_index, zero
from pipeline.ir.indexing_maps import coefficient
from pipeline.mlir import arith, ir, memref, nvgpu, scf, vector
from pipeline.passes.gpu.matmul.shared_memory_matmul import Side, Split, loops_in
from pipeline.passes.gpu.thread.thread_results import Results, indices, load, unravel
from pipeline.passes.gpu.thread.vector_access import is_aligned
from pipeline.passes.gpu.thread.warp_reduction import WARP


@dataclass(frozen=True)
class MmaForm:
    """How elements of a type are multiplied.

    Attributes:
        step: how far a block goes along the sum at a time.
        depth: how far one instruction goes.
        chunk: how many elements 16 bytes hold.
    """

    step: int
    depth: int
    chunk: int


OF_16_BITS, OF_TF32 = MmaForm(32, 16, 8), MmaForm(16, 8, 4)

#: The bytes of a row of banks.
_BANKS = 128


@dataclass(frozen=True)
class Block:
    """The number of the thread in its block, and how many there are."""

    thread: ir.Value
    threads: int


def allocate_shared(shape: Sequence[int], element: ir.Type, alignment: int) -> ir.Value:
    """Memory that the threads of a block share."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    kind = ir.MemRefType.get(list(shape), element, memory_space=space)
    return memref.AllocOp(kind, [], [], alignment=alignment).result


class Operand:
    """An operand's tiles in shared memory: with the sum along rows, if its last dim moves with that, or across."""

    first: ir.Value
    batch: dict[int, ir.Value]

    def __init__(
        self, results: Results, split: Split, side: Side, length: int, block: Block, form: MmaForm, stages: int
    ):
        self.split, self.side, self.length = split, side, length
        self.thread, self.threads = block.thread, block.threads
        self.lane = arith.RemUIOp(block.thread, as_index(WARP)).result
        self.view = results.anchor
        self.buffer = results.anchor.operands[side.operand]
        self.element = ir.MemRefType(self.buffer.type).element_type
        moving = loops_in(self.view.maps[side.operand], last=True)
        self.along_sum = not any(dim in moving for dim in side.dims)
        self.form = form
        self.shape = (length, self.form.step) if self.along_sum else (self.form.step, length)
        self.is_wide = self._can_be_wide()
        self.shared = self._allocate(stages)

    def _allocate(self, stages: int) -> ir.Value:
        return allocate_shared([stages, *self.shape], self.element, 16)

    def _can_be_wide(self) -> bool:
        """Whether 16 bytes of a row of the tile are side by side in memory, at a multiple of 16 bytes."""
        dims = self.split.sums if self.along_sum else self.side.dims
        indexing = self.view.maps[self.side.operand]
        *outer, last = indexing.results
        if not dims or last != ir.AffineDimExpr.get(dims[-1]) or self.split.sizes[dims[-1]] % self.form.chunk:
            return False
        return all(coefficient(result, dims[-1]) == 0 for result in outer) and is_aligned(self.buffer, self.form.chunk)

    def _swizzled(self, outer: ir.Value, inner: ir.Value) -> list[ir.Value]:
        """Where an element of the tile is: chunks of a row change places, by the row, and have no padding.

        So what a warp loads or stores at a time lies in different banks: 16 bytes of each of 8 rows by ldmatrix and
        cp.async; single elements of 8 rows and 4 columns, or of 4 rows and 8 columns, of float32.
        """
        chunks = self.shape[1] // self.form.chunk
        if chunks * 16 < _BANKS:
            number = arith.RemUIOp(
                arith.DivUIOp(outer, as_index(_BANKS // (chunks * 16))).result, as_index(chunks)
            ).result
        elif self.form == OF_TF32:
            number = arith.MulIOp(arith.RemUIOp(outer, as_index(4)).result, as_index(2)).result
        else:
            number = arith.RemUIOp(outer, as_index(8)).result
        return [outer, arith.XOrIOp(inner, arith.MulIOp(number, as_index(self.form.chunk)).result).result]

    def at(self, place: ir.Value) -> dict[int, ir.Value]:
        """The counters of the side's own loops."""
        sizes = [self.split.sizes[dim] for dim in self.side.dims]
        return dict(zip(self.side.dims, unravel(place, sizes), strict=True))

    def fetch(self, first: ir.Value, buffer: ir.Value) -> None:
        """Loads the tile from step `first` of the sum on; by copies that may be under way when it is done."""
        if not self.is_wide:
            self._fetch_elements(first, buffer)
            return
        for number in range(self.shape[0] * self.shape[1] // self.form.chunk // self.threads):
            self._fetch_chunk(first, buffer, number)

    def _fetch_chunk(self, first: ir.Value, buffer: ir.Value, number: int) -> None:
        chunk_number = arith.AddIOp(self.thread, as_index(number * self.threads)).result
        outer, chunk = unravel(chunk_number, [self.shape[0], self.shape[1] // self.form.chunk])
        inner = arith.MulIOp(chunk, as_index(self.form.chunk)).result
        at, inside = self._counters(first, outer, inner)
        size = as_index(self.form.chunk)
        if inside is not None:
            size = arith.SelectOp(inside, size, as_index(0)).result
        token = ir.Type.parse("!nvgpu.device.async.token")
        places = self._places(at)
        target = [buffer, *self._swizzled(outer, inner)]
        nvgpu.DeviceAsyncCopyOp(
            self.shared, target, self.buffer, places, self.form.chunk, srcElements=size, bypassL1=True, results=[token]
        )

    def _fetch_elements(self, first: ir.Value, buffer: ir.Value) -> None:
        """One by one; elements outside are 0, for what a sum takes from beyond its end must not be NaN."""
        loop = scf.ForOp(self.thread, as_index(self.shape[0] * self.shape[1]), as_index(self.threads))
        with ir.InsertionPoint(loop.body):
            outer, inner = unravel(loop.induction_variable, list(self.shape))
            at, inside = self._counters(first, outer, inner)
            value = load(self.buffer, self.view.maps[self.side.operand], at)
            if inside is not None:
                value = arith.SelectOp(inside, value, zero(self.element)).result
            memref.StoreOp(value, self.shared, [buffer, *self._swizzled(outer, inner)])
            scf.YieldOp([])

    def _counters(
        self, first: ir.Value, outer: ir.Value, inner: ir.Value
    ) -> tuple[dict[int, ir.Value], ir.Value | None]:
        """The loop counters of an element of the tile, clamped into the operand, and whether it lies inside.

        None where all do.
        """
        place, step = (outer, inner) if self.along_sum else (inner, outer)
        split = self.split
        own, in_sum = arith.AddIOp(self.first, place).result, arith.AddIOp(first, step).result
        at = dict(self.batch)
        inside: ir.Value | None = None
        for dims, number, size, tile in (
            (self.side.dims, own, self.side.size, self.length),
            (split.sums, in_sum, split.size_of(split.sums), self.form.step),
        ):
            if size % tile:
                fits = arith.CmpIOp(arith.CmpIPredicate.ult, number, as_index(size)).result
                inside = fits if inside is None else arith.AndIOp(inside, fits).result
                number = arith.SelectOp(fits, number, as_index(0)).result
            at |= dict(zip(dims, unravel(number, [split.sizes[dim] for dim in dims]), strict=True))
        return at, inside

    def _places(self, at: dict[int, ir.Value]) -> list[ir.Value]:
        return indices(self.view.maps[self.side.operand], at)

    def left(self, buffer: ir.Value, own: ir.Value, place: int, depth: int) -> ir.Value:
        """The left fragment from a place along the operand's own loops, and in the step, on."""
        if self.form == OF_TF32:
            return self._words(
                buffer, own, [(place, depth), (place + 8, depth), (place, depth + 4), (place + 8, depth + 4)]
            )
        return self._matrices(buffer, own, place, depth, is_right=False)

    def right(self, buffer: ir.Value, own: ir.Value, place: int, depth: int) -> list[ir.Value]:
        """Two right fragments, side by side."""
        if self.form == OF_TF32:
            return [self._words(buffer, own, [(start, depth), (start, depth + 4)]) for start in (place, place + 8)]
        pair = self._matrices(buffer, own, place, depth, is_right=True)
        return [half_of(pair, 0), half_of(pair, 1)]

    def _words(self, buffer: ir.Value, own: ir.Value, starts: Sequence[tuple[int, int]]) -> ir.Value:
        """A fragment of float32: thread l has place l / 4 and depth l % 4 from each start on."""
        lane = self.lane
        places = arith.AddIOp(own, arith.DivUIOp(lane, as_index(4)).result).result
        depths = arith.RemUIOp(lane, as_index(4)).result
        words = []
        for place, depth in starts:
            at = [arith.AddIOp(places, as_index(place)).result, arith.AddIOp(depths, as_index(depth)).result]
            place_in_tile = self._swizzled(*(at if self.along_sum else at[::-1]))
            words.append(memref.LoadOp(self.shared, [buffer, *place_in_tile]).result)
        kind = ir.VectorType.get([len(words), 1], self.element)
        return vector.FromElementsOp(kind, words).result

    def _matrices(self, buffer: ir.Value, own: ir.Value, place: int, depth: int, is_right: bool) -> ir.Value:
        start = Corner(own, place, depth)
        at = rows_of_matrices(start, self.lane, self.along_sum, is_right)
        return load_matrices(self.shared, [buffer, *self._swizzled(*at)], not self.along_sum)


@dataclass(frozen=True)
class Corner:
    """Where a fragment starts: `own + place` along the operand's own loops, `depth` along the sum."""

    own: ir.Value
    place: int
    depth: int


def rows_of_matrices(corner: Corner, lane: ir.Value, along_sum: bool, is_right: bool) -> list[ir.Value]:
    """Where the row begins that a lane names for ldmatrix, of a tile with the sum along rows, or across.

    16 x 16 elements are four matrices of 8 x 8, in the order of a left or of two right fragments. Lane l names row
    l % 8 of matrix l / 8. A left fragment has the rows' halves first, then those of the sum; of two right ones each
    has the halves of the sum.
    """
    eighth = arith.RemUIOp(lane, as_index(8)).result
    second = arith.RemUIOp(arith.DivUIOp(lane, as_index(8)).result, as_index(2)).result
    fourth = arith.DivUIOp(lane, as_index(16)).result
    by_place, by_depth = (fourth, second) if is_right else (second, fourth)
    places, depths = (arith.MulIOp(half, as_index(8)).result for half in (by_place, by_depth))
    if along_sum:
        places = arith.AddIOp(places, eighth).result
    else:
        depths = arith.AddIOp(depths, eighth).result
    places = arith.AddIOp(arith.AddIOp(corner.own, places).result, as_index(corner.place)).result
    depths = arith.AddIOp(depths, as_index(corner.depth)).result
    return [places, depths] if along_sum else [depths, places]


def load_matrices(shared: ir.Value, row: list[ir.Value], transposed: bool) -> ir.Value:
    """Four matrices by ldmatrix; each lane names a row of one, as `rows_of_matrices` says."""
    kind = ir.VectorType.get([4, 2], ir.MemRefType(shared.type).element_type)
    return nvgpu.LdMatrixOp(kind, shared, row, transposed, 4).result


def half_of(pair: ir.Value, number: int) -> ir.Value:
    """One of two right fragments."""
    kind = ir.VectorType.get([2, 2], ir.VectorType(pair.type).element_type)
    whole = ir.Operation.create("ub.poison", results=[kind]).result
    for row in range(2):
        whole = vector.InsertOp(vector.ExtractOp(pair, [], [2 * number + row]), whole, [], [row]).result
    return whole
