"""Writes what a block of threads does for the ops of a group; for the loops of tile-groups-to-blocks.

Numbers that the whole block needs are in registers of every thread. Elements are in registers where each thread reads
only what it wrote itself, else in memory that the threads share, with a barrier wherever one thread may need what
another one wrote. `pipeline.passes.gpu.block.element_distribution` says who has which element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.ir.constants import as_index, zero
from pipeline.ir.matchers import base, is_fill
from pipeline.ir.rewriting import copy_body
from pipeline.mlir import arith, gpu, ir, memref, scf, vector
from pipeline.passes.gpu.block.barrier_insertion import Access, Numbering, Order
from pipeline.passes.gpu.block.element_distribution import BlockOp, Shape, describe
from pipeline.passes.gpu.block.per_thread_reductions import Points, share
from pipeline.passes.gpu.thread import warp_reduction
from pipeline.passes.gpu.thread.thread_results import indices, is_private, load, unravel
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
        block_op = describe(op)
        assert block_op is not None, "tile-groups-to-blocks takes loops of known size only"
        for number in block_op.buffers:
            self._flush(block_op, number)
        self._synchronize(block_op)
        writers = {"number": self._number, "fold": self._fold, "elements": self._elements, "points": self._points}
        writers[block_op.kind](block_op)
        for output in block_op.view.outputs:
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

    def _flush(self, block_op: BlockOp, number: int) -> None:
        """Writes a fill to memory if this op reads it other than as a whole."""
        buffer = block_op.view.operands[number]
        for filled in [other for other in self._filled if base(other) == base(buffer) and other != buffer]:
            self._store_fill(filled)

    def _store_fill(self, buffer: ir.Value) -> None:
        value = self._filled.pop(buffer)
        self._order.access([Access(buffer, None, True)])
        self._share(list(ir.MemRefType(buffer.type).shape), lambda at: memref.StoreOp(value, buffer, at))

    def _share(self, sizes: Sequence[int], body: Callable[[list[ir.Value]], object]) -> None:
        share(self.thread, self.shape.threads, sizes, body)

    def _synchronize(self, block_op: BlockOp) -> None:
        """A barrier if the op needs what other threads have written, or overwrites what they may still read."""
        accesses = []
        for number in block_op.buffers:
            buffer, is_output = block_op.view.operands[number], number in block_op.view.outputs
            is_known = not is_output and (buffer in self._numbers or buffer in self._filled)
            if not is_known and base(buffer) not in self._never_stored:
                accesses.append(Access(buffer, self._numbering(block_op, number), is_output))
        self._order.access(accesses)

    def _numbering(self, block_op: BlockOp, number: int) -> Numbering | None:
        if block_op.kind not in ("fold", "elements") or not block_op.is_numbered(number):
            return None
        return block_op.view.operands[number], block_op.count, self.shape.lanes_of(block_op)

    # Elements

    def element(self, block_op: BlockOp, number: int, at: dict[int, ir.Value]) -> ir.Value:
        """The element of an operand at a point of the loops."""
        operand = block_op.view.operands[number]
        for known in (self._numbers, self._filled):
            if operand in known:
                return known[operand]
        assert base(operand) not in self._never_stored, "read other than as it was written"
        return load(operand, block_op.view.maps[number], at)

    def start(self, block_op: BlockOp, output: int, at: dict[int, ir.Value]) -> ir.Value:
        """What a result's element is before: what a fill has put there, else what is in memory."""
        if not block_op.reads_output(output):
            return zero(ir.MemRefType(block_op.view.operands[output].type).element_type)
        return self.element(block_op, output, at)

    def body(self, block_op: BlockOp, elements: Sequence[ir.Value], at: dict[int, ir.Value]) -> list[ir.Value]:
        """The body of an op on elements, at a point of the loops."""
        counters = [at.get(dim) or as_index(0) for dim in range(block_op.view.loops)]
        return copy_body(block_op.view, elements, counters.__getitem__)

    def serial(
        self, block_op: BlockOp, dims: list[int], at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """The reductions `dims`, one iteration after the other."""
        if not dims:
            inputs = [self.element(block_op, number, at) for number in range(block_op.view.inputs)]
            return self.body(block_op, inputs + values, at)
        loop = scf.ForOp(as_index(0), as_index(block_op.view.sizes[dims[0]] or 0), as_index(1), values)
        with ir.InsertionPoint(loop.body):
            inner = {**at, dims[0]: loop.induction_variable}
            scf.YieldOp(self.serial(block_op, dims[1:], inner, list(loop.inner_iter_args)))
        return list(loop.results)

    # Kinds of ops

    def _number(self, block_op: BlockOp) -> None:
        starts = [self.start(block_op, output, {}) for output in block_op.view.outputs]
        self._keep_numbers(block_op, self.serial(block_op, block_op.view.summed, {}, starts))

    def _keep_numbers(self, block_op: BlockOp, values: Sequence[ir.Value]) -> None:
        for output, value in zip(block_op.view.outputs, values, strict=True):
            buffer = block_op.view.operands[output]
            self._forget(buffer)
            self._numbers[buffer] = value
            if base(buffer) in self._never_stored:
                continue
            first = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, self.thread, as_index(0)).result)
            with ir.InsertionPoint(first.then_block):
                memref.StoreOp(value, buffer, indices(block_op.view.maps[output], {}))
                scf.YieldOp([])

    def _fold(self, block_op: BlockOp) -> None:
        kinds = [ir.MemRefType(block_op.view.operands[output].type).element_type for output in block_op.view.outputs]
        rows = ReducedRows(1, block_op.count, self.shape.threads, warp_reduction.folds_of(block_op.view.op))
        folding = warp_reduction.WarpEmitter(rows, kinds, self.shuffles)

        def step(first: ir.Value, round_: int | None, values: list[ir.Value]) -> list[ir.Value]:
            lanes = self.shape.lanes_of(block_op)
            loaded = [self._loaded(block_op, number, first, lanes, round_) for number in range(block_op.view.inputs)]
            for lane in range(lanes):
                elements = [each[lane] for each in loaded]
                values = self.body(block_op, elements + values, self._at(block_op, first, lane))
            return values

        partial = self._rounds(block_op, folding.identities(), step)
        total = folding.total(partial)
        starts = [self.start(block_op, output, {}) for output in block_op.view.outputs]
        self._keep_numbers(block_op, [combine(f, s, t) for f, s, t in zip(rows.folds, starts, total, strict=True)])

    def _elements(self, block_op: BlockOp) -> None:
        lanes = self.shape.lanes_of(block_op)
        kept: list[list[ir.Value]] = [[] for _ in block_op.view.outputs]

        def step(first: ir.Value, round_: int | None, values: list[ir.Value]) -> list[ir.Value]:
            read = [number for number in block_op.view.outputs if block_op.reads_output(number)]
            loaded = {n: self._loaded(block_op, n, first, lanes, round_) for n in (*range(block_op.view.inputs), *read)}
            results = []
            for lane in range(lanes):
                at = self._at(block_op, first, lane)
                starts = [
                    loaded[o][lane] if o in loaded else self.start(block_op, o, at) for o in block_op.view.outputs
                ]
                inputs = [loaded[number][lane] for number in range(block_op.view.inputs)]
                results.append(self.body(block_op, inputs + starts, at))
            for place, output in enumerate(block_op.view.outputs):
                self._store(block_op, output, first, [result[place] for result in results], kept[place])
            return values

        self._rounds(block_op, [], step)
        unrolled = self.shape.rounds(block_op) is not None
        for output, values in zip(block_op.view.outputs, kept, strict=True):
            self._forget(block_op.view.operands[output])
            if unrolled and block_op.is_numbered(output):
                self._in_registers[block_op.view.operands[output]] = values

    def _forget(self, buffer: ir.Value) -> None:
        """Drops what is known of a buffer that is written anew."""
        for known in (self._in_registers, self._numbers):
            for other in [other for other in known if base(other) == base(buffer)]:
                del known[other]

    def _rounds(
        self,
        block_op: BlockOp,
        values: list[ir.Value],
        step: Callable[[ir.Value, int | None, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Calls `step` for each of the thread's runs of elements: its first one, its number, what is handed on."""
        lanes = self.shape.lanes_of(block_op)
        start = self.thread if lanes == 1 else arith.MulIOp(self.thread, as_index(lanes)).result
        each = self.shape.threads * lanes
        rounds = self.shape.rounds(block_op)
        if rounds is not None:
            for number in range(rounds):
                first = start if number == 0 else arith.AddIOp(start, as_index(number * each)).result
                values = step(first, number, values)
            return values
        loop = scf.ForOp(start, as_index(block_op.count), as_index(each), values)
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(step(loop.induction_variable, None, list(loop.inner_iter_args)))
        return list(loop.results)

    def _at(self, block_op: BlockOp, first: ir.Value, lane: int) -> dict[int, ir.Value]:
        """The loop counters of an element."""
        number = first if lane == 0 else arith.AddIOp(first, as_index(lane)).result
        return dict(zip(block_op.dims, unravel(number, block_op.sizes), strict=True))

    def _loaded(
        self, block_op: BlockOp, number: int, first: ir.Value, lanes: int, round_: int | None
    ) -> list[ir.Value]:
        """The elements of an operand for a run of iterations."""
        buffer = block_op.view.operands[number]
        is_known = buffer in self._numbers or buffer in self._filled or not isinstance(buffer.type, ir.MemRefType)
        if is_known or block_op.is_one(number):
            return [self.element(block_op, number, self._at(block_op, first, 0))] * lanes
        if round_ is None or not block_op.is_numbered(number):
            return self._load_run(block_op, number, first, lanes)
        known = self._in_registers.setdefault(buffer, [])
        if len(known) <= round_ * lanes:
            known += self._load_run(block_op, number, first, lanes)
        return known[round_ * lanes : (round_ + 1) * lanes]

    def _load_run(self, block_op: BlockOp, number: int, first: ir.Value, lanes: int) -> list[ir.Value]:
        buffer = block_op.view.operands[number]
        if not self._is_wide(block_op, number, lanes):
            return [self.element(block_op, number, self._at(block_op, first, lane)) for lane in range(lanes)]
        kind = ir.VectorType.get([lanes], ir.MemRefType(buffer.type).element_type)
        at = indices(block_op.view.maps[number], self._at(block_op, first, 0))
        whole = vector.LoadOp(kind, buffer, at, alignment=_bytes(kind)).result
        return [vector.ExtractOp(whole, [], [lane]).result for lane in range(lanes)]

    def _store(
        self, block_op: BlockOp, number: int, first: ir.Value, values: list[ir.Value], kept: list[ir.Value]
    ) -> None:
        buffer = block_op.view.operands[number]
        kept += values
        if base(buffer) in self._never_stored:
            return
        if self._is_wide(block_op, number, len(values)):
            kind = ir.VectorType.get([len(values)], values[0].type)
            at = indices(block_op.view.maps[number], self._at(block_op, first, 0))
            vector.StoreOp(vector.FromElementsOp(kind, values).result, buffer, at, alignment=_bytes(kind))
            return
        for lane, value in enumerate(values):
            memref.StoreOp(value, buffer, indices(block_op.view.maps[number], self._at(block_op, first, lane)))

    def _is_wide(self, block_op: BlockOp, number: int, lanes: int) -> bool:
        buffer = block_op.view.operands[number]
        return lanes > 1 and block_op.is_numbered(number) and not is_private(buffer) and is_aligned(buffer, lanes)

    def _points(self, block_op: BlockOp) -> None:
        Points(self.thread, self.shape, self.shuffles, self.element, self.start, self.body).emit(block_op)
        for output in block_op.view.outputs:
            self._forget(block_op.view.operands[output])


def _never_stored(shape: Shape, ops: Sequence[BlockOp]) -> set[ir.Value]:
    """The buffers of the block whose elements all ops find in registers: each op numbers them in the same way."""
    buffers = {block_op.view.operands[number] for block_op in ops for number in block_op.buffers}
    found = set()
    for buffer in (buffer for buffer in buffers if is_private(buffer)):
        accesses = [(block_op, n) for block_op in ops for n in block_op.buffers if block_op.view.operands[n] == buffer]
        is_one = all(size == 1 for size in ir.MemRefType(buffer.type).shape)
        is_number = is_one and all(
            block_op.kind in ("number", "fold") or n < block_op.view.inputs for block_op, n in accesses
        )
        if is_number or all(shape.rounds(block_op) is not None and block_op.is_numbered(n) for block_op, n in accesses):
            found.add(buffer)
    views = {base(buffer) for buffer in buffers if base(buffer) != buffer}
    return found - views


def _bytes(kind: ir.VectorType) -> int:
    element = kind.element_type
    width = element.width if isinstance(element, (ir.IntegerType, ir.FloatType)) else 64
    return kind.shape[0] * (width // 8)
