"""Writes what a block of threads does for the ops of a group; what map-to-threads emits for loops of block-groups.

Numbers that the whole block needs are in registers of every thread. Elements are in registers where each thread reads
only what it wrote itself, else in memory that the threads share, with a barrier wherever one thread may need what
another one wrote. `pipeline.passes.block_plan` says who has which element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.analysis.access import coefficient
from pipeline.analysis.epilogue import base
from pipeline.analysis.tiling import fold_ops
from pipeline.mlir import arith, gpu, ir, memref, scf, vector
from pipeline.passes import row_reductions
from pipeline.passes.block_plan import BlockOp, Shape, describe, is_aligned
from pipeline.passes.contraction_blocks import contract_sums
from pipeline.passes.row_reductions import WARP, Rows, combine
from pipeline.passes.split_dispatches import is_fill
from pipeline.passes.thread_results import (
    clone_block,
    index,
    indices,
    is_private,
    load,
    unravel,
    zero,
)

#: How many results a thread computes side by side, to load what they share once.
_MOST_AT_ONCE = 8


#: A view of a buffer, how many elements it has, and how many neighbours a thread takes.
_Numbering = tuple[ir.Value, int, int]


@dataclass(frozen=True)
class _Access:
    """How a buffer was accessed since the last barrier: by which numbering of elements, and whether to write."""

    numbering: _Numbering | None
    wrote: bool


class Emitter:
    """Writes the ops of one iteration in front of themselves, one after the other."""

    def __init__(self, shape: Shape, ops: Sequence[BlockOp], copied: Sequence[ir.Value], shuffles: bool):
        self._shape = shape
        self._never_stored = _never_stored(shape, ops) - {base(buffer) for buffer in copied}
        self._shuffles = shuffles
        self._thread = gpu.ThreadIdOp(gpu.Dimension.x).result
        self._numbers: dict[ir.Value, ir.Value] = {}
        self._filled: dict[ir.Value, ir.Value] = {}
        self._in_registers: dict[ir.Value, list[ir.Value]] = {}
        self._accesses: dict[ir.Value, list[_Access]] = {}

    def emit(self, op: ir.Operation) -> None:
        """A linalg.generic or a copy, at the insertion point."""
        if op.name == "memref.copy":
            self._copy(op)
            return
        if is_fill(op):
            self._filled[op.operands[1]] = op.operands[0]
            return
        one = describe(op)
        assert one is not None, "block-groups takes loops of known size only"
        for number in one.buffers:
            self._flush(one, number)
        self._synchronize(one)
        writers = {"number": self._number, "fold": self._fold, "elements": self._elements, "points": self._points}
        writers[one.kind](one)
        for output in one.loops.outputs:
            self._filled.pop(op.operands[output], None)

    def _copy(self, op: ir.Operation) -> None:
        source, target = op.operands
        if source in self._filled:
            self._filled[target] = self._filled[source]
            return
        for filled in [other for other in self._filled if base(other) in (base(source), base(target))]:
            self._store_fill(filled)
        if self._conflicts(source, None, False) or self._conflicts(target, None, True):
            self.barrier()
        self._note(source, None, False)
        self._note(target, None, True)
        self._forget(target)
        sizes = list(ir.MemRefType(target.type).shape)
        self._each(sizes, lambda at: memref.StoreOp(memref.LoadOp(source, at).result, target, at))

    def finish(self) -> None:
        """What is left to write when all ops are done."""
        for buffer in list(self._filled):
            if not is_private(buffer):
                self._store_fill(buffer)

    def barrier(self) -> None:
        """Makes what every thread has written known to all."""
        gpu.BarrierOp()
        self._accesses = {}

    # Order

    def _flush(self, one: BlockOp, number: int) -> None:
        """Writes a fill to memory if this op reads it other than as a whole."""
        buffer = one.op.operands[number]
        for filled in [other for other in self._filled if base(other) == base(buffer) and other != buffer]:
            self._store_fill(filled)

    def _store_fill(self, buffer: ir.Value) -> None:
        value = self._filled.pop(buffer)
        self._note(buffer, None, True)
        sizes = list(ir.MemRefType(buffer.type).shape)
        self._each(sizes, lambda at: memref.StoreOp(value, buffer, at))

    def _each(self, sizes: Sequence[int], body: Callable[[list[ir.Value]], object]) -> None:
        """Calls `body` for the points of a box, which the threads share."""
        total = 1
        for size in sizes:
            total *= size
        loop = scf.ForOp(self._thread, index(total), index(self._shape.threads))
        with ir.InsertionPoint(loop.body):
            body(unravel(loop.induction_variable, sizes))
            scf.YieldOp([])

    def _synchronize(self, one: BlockOp) -> None:
        """A barrier if the op needs what other threads have written, or overwrites what they may still read."""
        accesses = []
        for number in one.buffers:
            buffer, is_output = one.op.operands[number], number in one.loops.outputs
            if buffer in self._numbers and not is_output or not is_output and buffer in self._filled:
                continue
            if base(buffer) in self._never_stored:
                continue
            accesses.append((buffer, self._numbering(one, number), is_output))
        if any(self._conflicts(*access) for access in accesses):
            self.barrier()
        for access in accesses:
            self._note(*access)

    def _numbering(self, one: BlockOp, number: int) -> _Numbering | None:
        if one.kind not in ("fold", "elements") or not one.is_numbered(number):
            return None
        return one.op.operands[number], one.count, self._shape.lanes_of(one)

    def _conflicts(self, buffer: ir.Value, numbering: _Numbering | None, writes: bool) -> bool:
        return any(
            (writes or access.wrote) and (numbering is None or access.numbering != numbering)
            for access in self._accesses.get(base(buffer), [])
        )

    def _note(self, buffer: ir.Value, numbering: _Numbering | None, wrote: bool) -> None:
        self._accesses.setdefault(base(buffer), []).append(_Access(numbering, wrote))

    # Elements

    def _load(self, one: BlockOp, number: int, at: dict[int, ir.Value]) -> ir.Value:
        operand = one.op.operands[number]
        for known in (self._numbers, self._filled):
            if operand in known:
                return known[operand]
        assert base(operand) not in self._never_stored, "read other than as it was written"
        return load(operand, one.loops.maps[number], at)

    def _start(self, one: BlockOp, output: int, at: dict[int, ir.Value]) -> ir.Value:
        """What a result's element is before: what a fill has put there, else what is in memory."""
        if not one.reads_output(output):
            return zero(ir.MemRefType(one.op.operands[output].type).element_type)
        return self._load(one, output, at)

    def _body(self, one: BlockOp, elements: Sequence[ir.Value], at: dict[int, ir.Value]) -> list[ir.Value]:
        counters = [at.get(dim) or index(0) for dim in range(len(one.loops.reductions))]
        return clone_block(one.op.regions[0].blocks[0], elements, counters)

    def _serial(self, one: BlockOp, dims: list[int], at: dict[int, ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        """The reductions `dims`, one iteration after the other."""
        if not dims:
            inputs = [self._load(one, number, at) for number in range(one.loops.inputs)]
            return self._body(one, inputs + values, at)
        loop = scf.ForOp(index(0), index(one.loops.sizes[dims[0]] or 0), index(1), values)
        with ir.InsertionPoint(loop.body):
            inner = {**at, dims[0]: loop.induction_variable}
            scf.YieldOp(self._serial(one, dims[1:], inner, list(loop.inner_iter_args)))
        return list(loop.results)

    # Kinds of ops

    def _number(self, one: BlockOp) -> None:
        starts = [self._start(one, output, {}) for output in one.loops.outputs]
        self._keep_numbers(one, self._serial(one, one.reductions, {}, starts))

    def _keep_numbers(self, one: BlockOp, values: Sequence[ir.Value]) -> None:
        for output, value in zip(one.loops.outputs, values, strict=True):
            buffer = one.op.operands[output]
            self._forget(buffer)
            self._numbers[buffer] = value
            if base(buffer) in self._never_stored:
                continue
            first = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, self._thread, index(0)).result)
            with ir.InsertionPoint(first.then_block):
                memref.StoreOp(value, buffer, indices(one.loops.maps[output], {}))
                scf.YieldOp([])

    def _fold(self, one: BlockOp) -> None:
        kinds = [ir.MemRefType(one.op.operands[output].type).element_type for output in one.loops.outputs]
        rows = Rows(1, one.count, self._shape.threads, row_reductions.folds_of(one.op))
        folding = row_reductions.Emitter(rows, kinds, self._shuffles)

        def step(first: ir.Value, round_: int | None, values: list[ir.Value]) -> list[ir.Value]:
            lanes = self._shape.lanes_of(one)
            loaded = [self._loaded(one, number, first, lanes, round_) for number in range(one.loops.inputs)]
            for lane in range(lanes):
                elements = [each[lane] for each in loaded]
                values = self._body(one, elements + values, self._at(one, first, lane))
            return values

        partial = self._rounds(one, folding.identities(), step)
        total = folding.total(partial)
        starts = [self._start(one, output, {}) for output in one.loops.outputs]
        self._keep_numbers(one, [combine(f, s, t) for f, s, t in zip(rows.folds, starts, total, strict=True)])

    def _elements(self, one: BlockOp) -> None:
        lanes = self._shape.lanes_of(one)
        kept: list[list[ir.Value]] = [[] for _ in one.loops.outputs]

        def step(first: ir.Value, round_: int | None, values: list[ir.Value]) -> list[ir.Value]:
            read = [number for number in one.loops.outputs if one.reads_output(number)]
            loaded = {n: self._loaded(one, n, first, lanes, round_) for n in (*range(one.loops.inputs), *read)}
            results = []
            for lane in range(lanes):
                at = self._at(one, first, lane)
                starts = [loaded[o][lane] if o in loaded else self._start(one, o, at) for o in one.loops.outputs]
                inputs = [loaded[number][lane] for number in range(one.loops.inputs)]
                results.append(self._body(one, inputs + starts, at))
            for place, output in enumerate(one.loops.outputs):
                self._store(one, output, first, [result[place] for result in results], kept[place])
            return values

        self._rounds(one, [], step)
        unrolled = self._shape.rounds(one) is not None
        for output, values in zip(one.loops.outputs, kept, strict=True):
            self._forget(one.op.operands[output])
            if unrolled and one.is_numbered(output):
                self._in_registers[one.op.operands[output]] = values

    def _forget(self, buffer: ir.Value) -> None:
        """Drops what is known of a buffer that is written anew."""
        for known in (self._in_registers, self._numbers):
            for other in [other for other in known if base(other) == base(buffer)]:
                del known[other]

    def _rounds(
        self,
        one: BlockOp,
        values: list[ir.Value],
        step: Callable[[ir.Value, int | None, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Calls `step` for each of the thread's runs of elements: its first one, its number, what is handed on."""
        lanes = self._shape.lanes_of(one)
        start = self._thread if lanes == 1 else arith.MulIOp(self._thread, index(lanes)).result
        each = self._shape.threads * lanes
        rounds = self._shape.rounds(one)
        if rounds is not None:
            for number in range(rounds):
                first = start if number == 0 else arith.AddIOp(start, index(number * each)).result
                values = step(first, number, values)
            return values
        loop = scf.ForOp(start, index(one.count), index(each), values)
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(step(loop.induction_variable, None, list(loop.inner_iter_args)))
        return list(loop.results)

    def _at(self, one: BlockOp, first: ir.Value, lane: int) -> dict[int, ir.Value]:
        """The loop counters of an element."""
        number = first if lane == 0 else arith.AddIOp(first, index(lane)).result
        return dict(zip(one.dims, unravel(number, one.sizes), strict=True))

    def _loaded(self, one: BlockOp, number: int, first: ir.Value, lanes: int, round_: int | None) -> list[ir.Value]:
        """The elements of an operand for a run of iterations."""
        buffer = one.op.operands[number]
        is_known = buffer in self._numbers or buffer in self._filled or not isinstance(buffer.type, ir.MemRefType)
        if is_known or one.is_one(number):
            return [self._load(one, number, self._at(one, first, 0))] * lanes
        if round_ is None or not one.is_numbered(number):
            return self._load_run(one, number, first, lanes)
        known = self._in_registers.setdefault(buffer, [])
        if len(known) <= round_ * lanes:
            known += self._load_run(one, number, first, lanes)
        return known[round_ * lanes : (round_ + 1) * lanes]

    def _load_run(self, one: BlockOp, number: int, first: ir.Value, lanes: int) -> list[ir.Value]:
        buffer = one.op.operands[number]
        if not self._is_wide(one, number, lanes):
            return [self._load(one, number, self._at(one, first, lane)) for lane in range(lanes)]
        kind = ir.VectorType.get([lanes], ir.MemRefType(buffer.type).element_type)
        at = indices(one.loops.maps[number], self._at(one, first, 0))
        whole = vector.LoadOp(kind, buffer, at, alignment=_bytes(kind)).result
        return [vector.ExtractOp(whole, [], [lane]).result for lane in range(lanes)]

    def _store(self, one: BlockOp, number: int, first: ir.Value, values: list[ir.Value], kept: list[ir.Value]) -> None:
        buffer = one.op.operands[number]
        kept += values
        if base(buffer) in self._never_stored:
            return
        if self._is_wide(one, number, len(values)):
            kind = ir.VectorType.get([len(values)], values[0].type)
            at = indices(one.loops.maps[number], self._at(one, first, 0))
            vector.StoreOp(vector.FromElementsOp(kind, values).result, buffer, at, alignment=_bytes(kind))
            return
        for lane, value in enumerate(values):
            memref.StoreOp(value, buffer, indices(one.loops.maps[number], self._at(one, first, lane)))

    def _is_wide(self, one: BlockOp, number: int, lanes: int) -> bool:
        buffer = one.op.operands[number]
        return lanes > 1 and one.is_numbered(number) and not is_private(buffer) and is_aligned(buffer, lanes)

    def _points(self, one: BlockOp) -> None:
        if self._shuffles and self._suits_warps(one):
            self._by_warps(one)
        else:
            self._by_threads(one)
        for output in one.loops.outputs:
            self._forget(one.op.operands[output])

    def _suits_warps(self, one: BlockOp) -> bool:
        """Whether there are fewer results than threads, and each is a fold that a warp can do together."""
        kinds = [str(ir.MemRefType(one.op.operands[output].type).element_type) for output in one.loops.outputs]
        length = row_reductions.length_of(one.loops)
        return (
            fold_ops(one.op) is not None
            and set(kinds) <= {"f32", "i32"}
            and length >= WARP
            and one.count * 2 <= self._shape.threads
        )

    def _by_warps(self, one: BlockOp) -> None:
        """A warp for each result; all warps go around equally often, for the threads of a warp must stay together."""
        warps = self._shape.threads // WARP
        lane = arith.RemUIOp(self._thread, index(WARP)).result
        warp = arith.DivUIOp(self._thread, index(WARP)).result
        kinds = [ir.MemRefType(one.op.operands[output].type).element_type for output in one.loops.outputs]
        length = row_reductions.length_of(one.loops)
        folding = row_reductions.Emitter(Rows(1, length, WARP, row_reductions.folds_of(one.op)), kinds, True)
        loop = scf.ForOp(index(0), index(-(-one.count // warps)), index(1))
        with ir.InsertionPoint(loop.body):
            first = arith.MulIOp(loop.induction_variable, index(warps)).result
            number = arith.AddIOp(first, warp).result
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, number, index(one.count)).result
            clamped = arith.MinUIOp(number, index(one.count - 1)).result
            at = dict(zip(one.dims, unravel(clamped, one.sizes), strict=True))
            total = folding.total(self._lane_of_warp(one, at, lane, length, folding.identities()))
            leads = arith.CmpIOp(arith.CmpIPredicate.eq, lane, index(0)).result
            branch = scf.IfOp(arith.AndIOp(leads, inside).result)
            with ir.InsertionPoint(branch.then_block):
                folds = zip(one.loops.outputs, folding.rows.folds, total, strict=True)
                values = [combine(fold, self._start(one, output, at), value) for output, fold, value in folds]
                self._store_points(one, at, values)
                scf.YieldOp([])
            scf.YieldOp([])

    def _lane_of_warp(
        self, one: BlockOp, at: dict[int, ir.Value], lane: ir.Value, length: int, values: list[ir.Value]
    ) -> list[ir.Value]:
        loop = scf.ForOp(lane, index(length), index(WARP), values)
        sizes = [one.loops.sizes[dim] or 0 for dim in one.reductions]
        with ir.InsertionPoint(loop.body):
            inner = at | dict(zip(one.reductions, unravel(loop.induction_variable, sizes), strict=True))
            scf.YieldOp(self._serial(one, [], inner, list(loop.inner_iter_args)))
        return list(loop.results)

    def _by_threads(self, one: BlockOp) -> None:
        """Whole results by each thread; several along a loop that leaves an input where it is."""
        side = _side_by_side(one, self._shape.threads)
        sizes = [1 if dim == side.dim else size for dim, size in zip(one.dims, one.sizes, strict=True)]
        if side.dim is not None:
            sizes[one.dims.index(side.dim)] = (one.loops.sizes[side.dim] or 1) // side.count

        def point(place: list[ir.Value]) -> None:
            at = dict(zip(one.dims, place, strict=True))
            points = [at]
            if side.dim is not None:
                first = arith.MulIOp(at[side.dim], index(side.count)).result
                points = [{**at, side.dim: arith.AddIOp(first, index(number)).result} for number in range(side.count)]
            starts = [self._start(one, output, each) for each in points for output in one.loops.outputs]
            values = self._together(one, one.reductions, points, starts, side.dim)
            width = len(one.loops.outputs)
            for number, each in enumerate(points):
                self._store_points(one, each, values[number * width : (number + 1) * width])

        self._each(sizes, point)

    def _together(
        self,
        one: BlockOp,
        dims: list[int],
        points: list[dict[int, ir.Value]],
        values: list[ir.Value],
        side: int | None,
    ) -> list[ir.Value]:
        """The reductions `dims` for several results; inputs that `side` leaves where they are, are loaded once."""
        if dims:
            loop = scf.ForOp(index(0), index(one.loops.sizes[dims[0]] or 0), index(1), values)
            with ir.InsertionPoint(loop.body):
                inner = [{**at, dims[0]: loop.induction_variable} for at in points]
                scf.YieldOp(self._together(one, dims[1:], inner, list(loop.inner_iter_args), side))
            return list(loop.results)
        width = len(one.loops.outputs)
        shared = {
            number: self._load(one, number, points[0])
            for number in range(one.loops.inputs)
            if side is None or not _moves(one, number, side)
        }
        results: list[ir.Value] = []
        for place, at in enumerate(points):
            inputs = [shared[n] if n in shared else self._load(one, n, at) for n in range(one.loops.inputs)]
            results += self._body(one, inputs + values[place * width : (place + 1) * width], at)
        if one.loops.inputs == 2:
            contract_sums(results)
        return results

    def _store_points(self, one: BlockOp, at: dict[int, ir.Value], values: Sequence[ir.Value]) -> None:
        for output, value in zip(one.loops.outputs, values, strict=True):
            memref.StoreOp(value, one.op.operands[output], indices(one.loops.maps[output], at))


def _never_stored(shape: Shape, ops: Sequence[BlockOp]) -> set[ir.Value]:
    """The buffers of the block whose elements all ops find in registers: each op numbers them in the same way."""
    buffers = {one.op.operands[number] for one in ops for number in one.buffers}
    found = set()
    for buffer in (buffer for buffer in buffers if is_private(buffer)):
        accesses = [(one, n) for one in ops for n in one.buffers if one.op.operands[n] == buffer]
        is_one = all(size == 1 for size in ir.MemRefType(buffer.type).shape)
        is_number = is_one and all(one.kind in ("number", "fold") or n < one.loops.inputs for one, n in accesses)
        if is_number or all(shape.rounds(one) is not None and one.is_numbered(n) for one, n in accesses):
            found.add(buffer)
    views = {base(buffer) for buffer in buffers if base(buffer) != buffer}
    return found - views


@dataclass(frozen=True)
class _Side:
    """A loop along which a thread computes several results side by side, and how many; no loop: one."""

    dim: int | None
    count: int


def _side_by_side(one: BlockOp, threads: int) -> _Side:
    """The loop that leaves an input where it is, if enough is left for all threads to do."""
    best = _Side(None, 1)
    for dim, size in zip(one.dims, one.sizes, strict=True):
        if all(_moves(one, number, dim) for number in one.buffers if number < one.loops.inputs):
            continue
        fitting = [n for n in range(1, _MOST_AT_ONCE + 1) if size % n == 0 and one.count // n * 2 >= threads]
        if fitting and max(fitting) > best.count:
            best = _Side(dim, max(fitting))
    return best


def _moves(one: BlockOp, number: int, dim: int) -> bool:
    return any(coefficient(expression, dim) != 0 for expression in one.loops.maps[number].results)


def _bytes(kind: ir.VectorType) -> int:
    element = kind.element_type
    width = element.width if isinstance(element, (ir.IntegerType, ir.FloatType)) else 64
    return kind.shape[0] * (width // 8)
