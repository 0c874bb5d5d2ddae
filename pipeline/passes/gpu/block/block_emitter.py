"""Writes what a block of threads does for the ops of a group; for the loops of tile-groups-to-blocks.

Numbers that the whole block needs are in registers of every thread. Elements are in registers where each thread reads
only what it wrote itself, else in memory that the threads share, with a barrier wherever one thread may need what
another one wrote. `pipeline.passes.gpu.block.element_distribution` says who has which element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.ir.matchers import base, is_fill
from pipeline.mlir import arith, gpu, ir, memref, scf, vector
from pipeline.passes.gpu.block.barrier_insertion import Access, Numbering, Order
from pipeline.passes.gpu.block.element_distribution import BlockOp, Shape, describe
from pipeline.passes.gpu.block.per_thread_reductions import Points, share
from pipeline.passes.gpu.thread import warp_reduction
from pipeline.passes.gpu.thread.thread_results import clone_block, index, indices, is_private, load, unravel, zero
from pipeline.passes.gpu.thread.vector_access import is_aligned
from pipeline.passes.gpu.thread.warp_reduction import ReducedRows, combine


class BlockEmitter:
    """Writes the ops of one iteration in front of themselves, one after the other."""

    def __init__(self, shape: Shape, ops: Sequence[BlockOp], copied: Sequence[ir.Value], shuffles: bool):
        self.shape = shape
        self._never_stored = _never_stored(shape, ops) - {base(buffer) for buffer in copied}
        self.shuffles = shuffles
        self.thread = gpu.ThreadIdOp(gpu.Dimension.x).result
        self._numbers: dict[ir.Value, ir.Value] = {}
        self._filled: dict[ir.Value, ir.Value] = {}
        self._in_registers: dict[ir.Value, list[ir.Value]] = {}
        self._order = Order()

    def emit(self, op: ir.Operation) -> None:
        """A linalg.generic or a copy, at the insertion point."""
        if op.name == "memref.copy":
            self._copy(op)
            return
        if is_fill(op):
            self._forget(op.operands[1])
            self._filled[op.operands[1]] = op.operands[0]
            return
        one = describe(op)
        assert one is not None, "tile-groups-to-blocks takes loops of known size only"
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
        self._order.access([Access(source, None, False), Access(target, None, True)])
        self._forget(target)
        sizes = list(ir.MemRefType(target.type).shape)
        self._share(sizes, lambda at: memref.StoreOp(memref.LoadOp(source, at).result, target, at))

    def finish(self) -> None:
        """What is left to write when all ops are done."""
        for buffer in list(self._filled):
            if not is_private(buffer):
                self._store_fill(buffer)

    def barrier(self) -> None:
        """Makes what every thread has written known to all."""
        self._order.barrier()

    # Order

    def _flush(self, one: BlockOp, number: int) -> None:
        """Writes a fill to memory if this op reads it other than as a whole."""
        buffer = one.op.operands[number]
        for filled in [other for other in self._filled if base(other) == base(buffer) and other != buffer]:
            self._store_fill(filled)

    def _store_fill(self, buffer: ir.Value) -> None:
        value = self._filled.pop(buffer)
        self._order.access([Access(buffer, None, True)])
        self._share(list(ir.MemRefType(buffer.type).shape), lambda at: memref.StoreOp(value, buffer, at))

    def _share(self, sizes: Sequence[int], body: Callable[[list[ir.Value]], object]) -> None:
        share(self.thread, self.shape.threads, sizes, body)

    def _synchronize(self, one: BlockOp) -> None:
        """A barrier if the op needs what other threads have written, or overwrites what they may still read."""
        accesses = []
        for number in one.buffers:
            buffer, is_output = one.op.operands[number], number in one.loops.outputs
            is_known = not is_output and (buffer in self._numbers or buffer in self._filled)
            if not is_known and base(buffer) not in self._never_stored:
                accesses.append(Access(buffer, self._numbering(one, number), is_output))
        self._order.access(accesses)

    def _numbering(self, one: BlockOp, number: int) -> Numbering | None:
        if one.kind not in ("fold", "elements") or not one.is_numbered(number):
            return None
        return one.op.operands[number], one.count, self.shape.lanes_of(one)

    # Elements

    def element(self, one: BlockOp, number: int, at: dict[int, ir.Value]) -> ir.Value:
        """The element of an operand at a point of the loops."""
        operand = one.op.operands[number]
        for known in (self._numbers, self._filled):
            if operand in known:
                return known[operand]
        assert base(operand) not in self._never_stored, "read other than as it was written"
        return load(operand, one.loops.maps[number], at)

    def start(self, one: BlockOp, output: int, at: dict[int, ir.Value]) -> ir.Value:
        """What a result's element is before: what a fill has put there, else what is in memory."""
        if not one.reads_output(output):
            return zero(ir.MemRefType(one.op.operands[output].type).element_type)
        return self.element(one, output, at)

    def body(self, one: BlockOp, elements: Sequence[ir.Value], at: dict[int, ir.Value]) -> list[ir.Value]:
        """The body of an op on elements, at a point of the loops."""
        counters = [at.get(dim) or index(0) for dim in range(len(one.loops.reductions))]
        return clone_block(one.op.regions[0].blocks[0], elements, counters)

    def serial(self, one: BlockOp, dims: list[int], at: dict[int, ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        """The reductions `dims`, one iteration after the other."""
        if not dims:
            inputs = [self.element(one, number, at) for number in range(one.loops.inputs)]
            return self.body(one, inputs + values, at)
        loop = scf.ForOp(index(0), index(one.loops.sizes[dims[0]] or 0), index(1), values)
        with ir.InsertionPoint(loop.body):
            inner = {**at, dims[0]: loop.induction_variable}
            scf.YieldOp(self.serial(one, dims[1:], inner, list(loop.inner_iter_args)))
        return list(loop.results)

    # Kinds of ops

    def _number(self, one: BlockOp) -> None:
        starts = [self.start(one, output, {}) for output in one.loops.outputs]
        self._keep_numbers(one, self.serial(one, one.reductions, {}, starts))

    def _keep_numbers(self, one: BlockOp, values: Sequence[ir.Value]) -> None:
        for output, value in zip(one.loops.outputs, values, strict=True):
            buffer = one.op.operands[output]
            self._forget(buffer)
            self._numbers[buffer] = value
            if base(buffer) in self._never_stored:
                continue
            first = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, self.thread, index(0)).result)
            with ir.InsertionPoint(first.then_block):
                memref.StoreOp(value, buffer, indices(one.loops.maps[output], {}))
                scf.YieldOp([])

    def _fold(self, one: BlockOp) -> None:
        kinds = [ir.MemRefType(one.op.operands[output].type).element_type for output in one.loops.outputs]
        rows = ReducedRows(1, one.count, self.shape.threads, warp_reduction.folds_of(one.op))
        folding = warp_reduction.WarpEmitter(rows, kinds, self.shuffles)

        def step(first: ir.Value, round_: int | None, values: list[ir.Value]) -> list[ir.Value]:
            lanes = self.shape.lanes_of(one)
            loaded = [self._loaded(one, number, first, lanes, round_) for number in range(one.loops.inputs)]
            for lane in range(lanes):
                elements = [each[lane] for each in loaded]
                values = self.body(one, elements + values, self._at(one, first, lane))
            return values

        partial = self._rounds(one, folding.identities(), step)
        total = folding.total(partial)
        starts = [self.start(one, output, {}) for output in one.loops.outputs]
        self._keep_numbers(one, [combine(f, s, t) for f, s, t in zip(rows.folds, starts, total, strict=True)])

    def _elements(self, one: BlockOp) -> None:
        lanes = self.shape.lanes_of(one)
        kept: list[list[ir.Value]] = [[] for _ in one.loops.outputs]

        def step(first: ir.Value, round_: int | None, values: list[ir.Value]) -> list[ir.Value]:
            read = [number for number in one.loops.outputs if one.reads_output(number)]
            loaded = {n: self._loaded(one, n, first, lanes, round_) for n in (*range(one.loops.inputs), *read)}
            results = []
            for lane in range(lanes):
                at = self._at(one, first, lane)
                starts = [loaded[o][lane] if o in loaded else self.start(one, o, at) for o in one.loops.outputs]
                inputs = [loaded[number][lane] for number in range(one.loops.inputs)]
                results.append(self.body(one, inputs + starts, at))
            for place, output in enumerate(one.loops.outputs):
                self._store(one, output, first, [result[place] for result in results], kept[place])
            return values

        self._rounds(one, [], step)
        unrolled = self.shape.rounds(one) is not None
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
        lanes = self.shape.lanes_of(one)
        start = self.thread if lanes == 1 else arith.MulIOp(self.thread, index(lanes)).result
        each = self.shape.threads * lanes
        rounds = self.shape.rounds(one)
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
            return [self.element(one, number, self._at(one, first, 0))] * lanes
        if round_ is None or not one.is_numbered(number):
            return self._load_run(one, number, first, lanes)
        known = self._in_registers.setdefault(buffer, [])
        if len(known) <= round_ * lanes:
            known += self._load_run(one, number, first, lanes)
        return known[round_ * lanes : (round_ + 1) * lanes]

    def _load_run(self, one: BlockOp, number: int, first: ir.Value, lanes: int) -> list[ir.Value]:
        buffer = one.op.operands[number]
        if not self._is_wide(one, number, lanes):
            return [self.element(one, number, self._at(one, first, lane)) for lane in range(lanes)]
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
        Points(self.thread, self.shape, self.shuffles, self.element, self.start, self.body).emit(one)
        for output in one.loops.outputs:
            self._forget(one.op.operands[output])


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


def _bytes(kind: ir.VectorType) -> int:
    element = kind.element_type
    width = element.width if isinstance(element, (ir.IntegerType, ir.FloatType)) else 64
    return kind.shape[0] * (width // 8)
