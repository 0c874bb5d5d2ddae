"""Writes what a thread does for a product of a few rows with a matrix, as in decoding; what map-to-threads emits.

Such a product is as fast as the matrix comes from memory, once. A thread has some neighbouring columns, which are one
access of 16 bytes, of all rows, and a part of the sum; neighbouring threads have neighbouring columns, so that a block
reads whole sectors of each line of the matrix. The parts of the sum are combined by shuffles, then through shared
memory, in the same order at each call. Where a block for each strip of columns would leave most of a GPU idle, strips
are narrower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import copy_body
from pipeline.mlir import arith, gpu, ir, memref, scf, vector
from pipeline.passes.gpu.matmul.shared_memory_matmul import Split, classify, contract_sums
from pipeline.passes.gpu.thread.launch_patterns import is_arithmetic
from pipeline.passes.gpu.thread.thread_results import Results, indices, load, unravel
from pipeline.passes.gpu.thread.vector_access import BYTES, is_aligned
from pipeline.passes.gpu.thread.warp_reduction import WARP, combine, identity

#: The rows whose sums fit into a thread's registers, and what is less work than a block is worth.
_MOST_ROWS, _SHORTEST_SUM, _FEWEST_COLUMNS = 8, 64, 32

THREADS = 256
_MOST_BLOCKS = 65535

#: Blocks that large GPUs want at least, two for each multiprocessor; strips are narrowed down to a sector of 32 bytes.
_ENOUGH_BLOCKS, _SECTOR = 256, 32

#: The bytes of an access, and of the partial sums that a block may share.
_ACCESS, _MOST_SHARED = 16, 40 * 1024


@dataclass(frozen=True)
class Strips:
    """How columns are shared out.

    Attributes:
        lanes: the columns that a thread has.
        across: the threads of a block side by side along columns; the others are along the sum.
        count: the strips of a row.
    """

    lanes: int
    across: int
    count: int

    @property
    def along(self) -> int:
        """The threads of a block along the sum."""
        return THREADS // self.across

    @property
    def columns(self) -> int:
        """The columns of a block."""
        return self.lanes * self.across


def choose_strips(view: LinalgOp) -> tuple[Split, Strips] | None:
    """None where an op is no fold of products of a few rows with a matrix whose lines lie side by side."""
    if not is_arithmetic(view.op) or not all(isinstance(operand.type, ir.MemRefType) for operand in view.operands):
        return None
    split = classify(view)
    if split is None or fold_ops(view.op) is None or not _has_lines(view, split):
        return None
    rows, columns, total = split.rows.size, split.columns.size, split.size_of(split.sums)
    if not 0 < rows <= _MOST_ROWS or columns < _FEWEST_COLUMNS or total < _SHORTEST_SUM:
        return None
    bits = BYTES.get(str(ir.MemRefType(view.operands[split.columns.operand].type).element_type))
    width = ir.MemRefType(view.operands[2].type).element_type
    if bits is None or str(width) not in BYTES:
        return None
    lanes = _lanes(view, split, _ACCESS // bits)
    batch = split.size_of(split.batch)
    across = 32
    while across * lanes * bits > _SECTOR and across > 1 and batch * -(-columns // (across * lanes)) < _ENOUGH_BLOCKS:
        across //= 2
    while _parts(width, THREADS // across) * across * lanes * rows * BYTES[str(width)] > _MOST_SHARED and lanes > 1:
        lanes //= 2
    strips = Strips(lanes, across, -(-columns // (across * lanes)))
    return (split, strips) if 0 < batch * strips.count <= _MOST_BLOCKS else None


def _parts(kind: ir.Type, along: int) -> int:
    """How many partial sums of a column are in shared memory: of each warp one, where numbers can be handed over."""
    return THREADS // WARP if str(kind) in ("f32", "i32") else along


def _has_lines(view: LinalgOp, split: Split) -> bool:
    """Whether the innermost loop of the columns moves along the last dim of the matrix and of the result, alone."""
    if not split.columns.dims:
        return False
    innermost = split.columns.dims[-1]
    for operand in (split.columns.operand, 2):
        *outer, last = view.maps[operand].results
        if last != ir.AffineDimExpr.get(innermost) or any(coefficient(e, innermost) != 0 for e in outer):
            return False
    return True


def _lanes(view: LinalgOp, split: Split, most: int) -> int:
    """How many columns side by side are one access."""
    innermost, buffer = split.columns.dims[-1], view.operands[split.columns.operand]
    lanes = most
    while lanes > 1 and (split.sizes[innermost] % lanes or not is_aligned(buffer, lanes)):
        lanes //= 2
    return lanes


class FewRowsEmitter:
    """Writes the kernel at the insertion point: the op that `results` is of, and what is done with its results.

    The result begins with the number `start`, or with what is in its memory where that is None.
    """

    def __init__(self, results: Results, split: Split, strips: Strips, start: ir.Value | None):
        self.results, self.view, self.split, self.strips, self.start = results, results.anchor, split, strips, start
        self.kind = ir.MemRefType(self.view.operands[2].type).element_type
        (self.fold,) = fold_ops(self.view.op) or ("",)
        thread, block = gpu.ThreadIdOp(gpu.Dimension.x).result, gpu.BlockIdOp(gpu.Dimension.x).result
        self.thread = thread
        self.part, place = unravel(thread, [strips.along, strips.across])
        batch, strip = unravel(block, [split.size_of(split.batch), strips.count])
        self.batch = dict(zip(split.batch, unravel(batch, [split.sizes[dim] for dim in split.batch]), strict=True))
        self.parts = _parts(self.kind, strips.along)
        self.shuffles = self.parts != strips.along
        self.strip = arith.MulIOp(strip, as_index(strips.columns)).result
        self.first = arith.AddIOp(self.strip, arith.MulIOp(place, as_index(strips.lanes)).result).result

    def emit(self) -> None:
        """Everything."""
        rows, lanes = self.split.rows.size, self.strips.lanes
        nothing = identity(self.fold, self.kind)
        loop = scf.ForOp(
            self.part,
            as_index(self.split.size_of(self.split.sums)),
            as_index(self.strips.along),
            [nothing] * (rows * lanes),
        )
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(self._step(loop.induction_variable, list(loop.inner_iter_args)))
        shared = self._share(self._across_lanes(list(loop.results)) if self.shuffles else list(loop.results))
        gpu.BarrierOp()
        self._finish(shared)

    def _step(self, place: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """One element of the sum, for all rows and the thread's columns."""
        sizes = [self.split.sizes[dim] for dim in self.split.sums]
        at = self.batch | dict(zip(self.split.sums, unravel(place, sizes), strict=True))
        right = self._line(at)
        found = []
        for row in range(self.split.rows.size):
            left = load(
                self.view.operands[self.split.rows.operand],
                self.view.maps[self.split.rows.operand],
                at | self._row(as_index(row)),
            )
            for lane in range(self.strips.lanes):
                pair = [right[lane], left] if self.split.rows.operand else [left, right[lane]]
                found += copy_body(self.view, [*pair, sums[row * self.strips.lanes + lane]])
        contract_sums(found)
        return found

    def _line(self, at: dict[int, ir.Value]) -> list[ir.Value]:
        """The thread's elements of a line of the matrix; the last ones again where the line is at its end."""
        side, lanes = self.split.columns, self.strips.lanes
        first = self.first
        if side.size % self.strips.columns:
            first = arith.MinUIOp(first, as_index(side.size - lanes)).result
        buffer, indexing = self.view.operands[side.operand], self.view.maps[side.operand]
        place = indices(indexing, at | self._column(first))
        if lanes == 1:
            return [memref.LoadOp(buffer, place).result]
        kind = ir.VectorType.get([lanes], ir.MemRefType(buffer.type).element_type)
        loaded = vector.LoadOp(kind, buffer, place, alignment=lanes * BYTES[str(kind.element_type)]).result
        return [vector.ExtractOp(loaded, [], [lane]).result for lane in range(lanes)]

    def _across_lanes(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The sums of all threads of a warp that have the same columns."""
        word, distance = ir.IntegerType.get_signless(32), self.strips.across
        while distance < WARP:
            offset, width = (arith.ConstantOp(word, number).result for number in (distance, WARP))
            others = [gpu.ShuffleOp(value, offset, width, gpu.ShuffleMode.XOR).shuffleResult for value in sums]
            sums = [combine(self.fold, value, other) for value, other in zip(sums, others, strict=True)]
            distance *= 2
        return sums

    def _share(self, sums: Sequence[ir.Value]) -> ir.Value:
        """The partial sums in shared memory: [part of the sum, row, column of the strip]."""
        rows, lanes, columns = self.split.rows.size, self.strips.lanes, self.strips.columns
        space = ir.Attribute.parse("#gpu.address_space<workgroup>")
        kind = ir.MemRefType.get([self.parts, rows, columns], self.kind, memory_space=space)
        shared = memref.AllocOp(kind, [], [], alignment=16).result
        part, first = self.part, as_index(0)
        if self.shuffles:
            part, first = (op(self.thread, as_index(WARP)).result for op in (arith.DivUIOp, arith.RemUIOp))
        leads = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, first, as_index(self.strips.across)).result)
        with ir.InsertionPoint(leads.then_block):
            own = arith.SubIOp(self.first, self.strip).result
            for row in range(rows):
                for lane in range(lanes):
                    place = [part, as_index(row), arith.AddIOp(own, as_index(lane)).result]
                    memref.StoreOp(sums[row * lanes + lane], shared, place)
            scf.YieldOp([])
        return shared

    def _finish(self, shared: ir.Value) -> None:
        """A thread for each row and column of the strip combines its parts and writes the result."""
        rows, columns = self.split.rows.size, self.strips.columns
        loop = scf.ForOp(self.thread, as_index(rows * columns), as_index(THREADS))
        with ir.InsertionPoint(loop.body):
            row, place = unravel(loop.induction_variable, [rows, columns])
            column = arith.AddIOp(self.strip, place).result
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, column, as_index(self.split.columns.size)).result
            branch = scf.IfOp(inside)
            with ir.InsertionPoint(branch.then_block):
                at = self.batch | self._row(row) | self._column(column)
                start = self.start if self.start is not None else load(self.view.operands[2], self.view.maps[2], at)
                parts = scf.ForOp(as_index(0), as_index(self.parts), as_index(1), [start])
                with ir.InsertionPoint(parts.body):
                    value = memref.LoadOp(shared, [parts.induction_variable, row, place]).result
                    scf.YieldOp([combine(self.fold, parts.inner_iter_args[0], value)])
                self.results.write(at, [parts.results[0]])
                scf.YieldOp([])
            scf.YieldOp([])

    def _row(self, number: ir.Value) -> dict[int, ir.Value]:
        dims = self.split.rows.dims
        return dict(zip(dims, unravel(number, [self.split.sizes[dim] for dim in dims]), strict=True))

    def _column(self, number: ir.Value) -> dict[int, ir.Value]:
        dims = self.split.columns.dims
        return dict(zip(dims, unravel(number, [self.split.sizes[dim] for dim in dims]), strict=True))
