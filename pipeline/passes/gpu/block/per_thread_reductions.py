"""Writes what a block of threads does for an op with several results that are reductions; what map-to-threads emits.

Each thread computes whole results, or each warp where there are few: products of matrices inside of an attention, the
sums of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import coefficient
from pipeline.mlir import arith, ir, memref, scf
from pipeline.passes.gpu.block.element_distribution import BlockOp, Shape
from pipeline.passes.gpu.matmul.shared_memory_matmul import contract_sums
from pipeline.passes.gpu.thread import warp_reduction
from pipeline.passes.gpu.thread.thread_results import indices, unravel
from pipeline.passes.gpu.thread.warp_reduction import WARP, ReducedRows, combine

#: How many results a thread computes side by side, to load what they share once.
_MOST_AT_ONCE = 8

At = dict[int, ir.Value]


def share(thread: ir.Value, threads: int, sizes: Sequence[int], body: Callable[[list[ir.Value]], object]) -> None:
    """Calls `body` for the points of a box, which the threads share."""
    loop = scf.ForOp(thread, as_index(prod(sizes)), as_index(threads))
    with ir.InsertionPoint(loop.body):
        body(unravel(loop.induction_variable, sizes))
        scf.YieldOp([])


@dataclass(frozen=True)
class Points:
    """What a block knows when it computes results.

    Attributes:
        thread: the number of the thread in the block.
        shape: how many threads there are.
        shuffles: whether the threads of a warp can hand numbers to each other.
        element: the element of an operand at a point of the loops.
        start: what a result's element is before.
        body: the body of an op on elements, at a point.
    """

    thread: ir.Value
    shape: Shape
    shuffles: bool
    element: Callable[[BlockOp, int, At], ir.Value]
    start: Callable[[BlockOp, int, At], ir.Value]
    body: Callable[[BlockOp, Sequence[ir.Value], At], list[ir.Value]]

    def emit(self, block_op: BlockOp) -> None:
        """The op, at the insertion point."""
        if self.shuffles and self._suits_warps(block_op):
            self._by_warps(block_op)
        else:
            self._by_threads(block_op)

    def _suits_warps(self, block_op: BlockOp) -> bool:
        """Whether there are fewer results than threads, and each is a fold that a warp can do together."""
        kinds = [
            str(ir.MemRefType(block_op.view.operands[output].type).element_type) for output in block_op.view.outputs
        ]
        length = warp_reduction.length_of(block_op.view)
        return (
            fold_ops(block_op.view.op) is not None
            and set(kinds) <= {"f32", "i32"}
            and length >= WARP
            and block_op.count * 2 <= self.shape.threads
        )

    def _by_warps(self, block_op: BlockOp) -> None:
        """A warp for each result; all warps go around equally often, for the threads of a warp must stay together."""
        warps = self.shape.threads // WARP
        lane = arith.RemUIOp(self.thread, as_index(WARP)).result
        warp = arith.DivUIOp(self.thread, as_index(WARP)).result
        kinds = [ir.MemRefType(block_op.view.operands[output].type).element_type for output in block_op.view.outputs]
        length = warp_reduction.length_of(block_op.view)
        folding = warp_reduction.WarpEmitter(
            ReducedRows(1, length, WARP, warp_reduction.folds_of(block_op.view.op)), kinds, True
        )
        loop = scf.ForOp(as_index(0), as_index(-(-block_op.count // warps)), as_index(1))
        with ir.InsertionPoint(loop.body):
            first = arith.MulIOp(loop.induction_variable, as_index(warps)).result
            number = arith.AddIOp(first, warp).result
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, number, as_index(block_op.count)).result
            clamped = arith.MinUIOp(number, as_index(block_op.count - 1)).result
            at = dict(zip(block_op.dims, unravel(clamped, block_op.sizes), strict=True))
            total = folding.total(self._lane_of_warp(block_op, at, lane, length, folding.identities()))
            leads = arith.CmpIOp(arith.CmpIPredicate.eq, lane, as_index(0)).result
            branch = scf.IfOp(arith.AndIOp(leads, inside).result)
            with ir.InsertionPoint(branch.then_block):
                folds = zip(block_op.view.outputs, folding.rows.folds, total, strict=True)
                values = [combine(fold, self.start(block_op, output, at), value) for output, fold, value in folds]
                self._store_points(block_op, at, values)
                scf.YieldOp([])
            scf.YieldOp([])

    def _lane_of_warp(
        self, block_op: BlockOp, at: dict[int, ir.Value], lane: ir.Value, length: int, values: list[ir.Value]
    ) -> list[ir.Value]:
        loop = scf.ForOp(lane, as_index(length), as_index(WARP), values)
        sizes = [block_op.view.sizes[dim] or 0 for dim in block_op.view.summed]
        with ir.InsertionPoint(loop.body):
            inner = at | dict(zip(block_op.view.summed, unravel(loop.induction_variable, sizes), strict=True))
            scf.YieldOp(self._together(block_op, [], [inner], list(loop.inner_iter_args), None))
        return list(loop.results)

    def _by_threads(self, block_op: BlockOp) -> None:
        """Whole results by each thread; several along a loop that leaves an input where it is."""
        side = _side_by_side(block_op, self.shape.threads)
        sizes = [1 if dim == side.dim else size for dim, size in zip(block_op.dims, block_op.sizes, strict=True)]
        if side.dim is not None:
            sizes[block_op.dims.index(side.dim)] = (block_op.view.sizes[side.dim] or 1) // side.count

        def point(place: list[ir.Value]) -> None:
            at = dict(zip(block_op.dims, place, strict=True))
            points = [at]
            if side.dim is not None:
                first = arith.MulIOp(at[side.dim], as_index(side.count)).result
                points = [
                    {**at, side.dim: arith.AddIOp(first, as_index(number)).result} for number in range(side.count)
                ]
            starts = [self.start(block_op, output, each) for each in points for output in block_op.view.outputs]
            values = self._together(block_op, block_op.view.summed, points, starts, side.dim)
            width = len(block_op.view.outputs)
            for number, each in enumerate(points):
                self._store_points(block_op, each, values[number * width : (number + 1) * width])

        share(self.thread, self.shape.threads, sizes, point)

    def _together(
        self,
        block_op: BlockOp,
        dims: list[int],
        points: list[dict[int, ir.Value]],
        values: list[ir.Value],
        side: int | None,
    ) -> list[ir.Value]:
        """The reductions `dims` for several results; inputs that `side` leaves where they are, are loaded once."""
        if dims:
            loop = scf.ForOp(as_index(0), as_index(block_op.view.sizes[dims[0]] or 0), as_index(1), values)
            with ir.InsertionPoint(loop.body):
                inner = [{**at, dims[0]: loop.induction_variable} for at in points]
                scf.YieldOp(self._together(block_op, dims[1:], inner, list(loop.inner_iter_args), side))
            return list(loop.results)
        width = len(block_op.view.outputs)
        shared = {
            number: self.element(block_op, number, points[0])
            for number in range(block_op.view.inputs)
            if side is None or not _moves(block_op, number, side)
        }
        results: list[ir.Value] = []
        for place, at in enumerate(points):
            inputs = [shared[n] if n in shared else self.element(block_op, n, at) for n in range(block_op.view.inputs)]
            results += self.body(block_op, inputs + values[place * width : (place + 1) * width], at)
        if block_op.view.inputs == 2:
            contract_sums(results)
        return results

    def _store_points(self, block_op: BlockOp, at: dict[int, ir.Value], values: Sequence[ir.Value]) -> None:
        for output, value in zip(block_op.view.outputs, values, strict=True):
            memref.StoreOp(value, block_op.view.operands[output], indices(block_op.view.maps[output], at))


@dataclass(frozen=True)
class _Side:
    """A loop along which a thread computes several results side by side, and how many; no loop: one."""

    dim: int | None
    count: int


def _side_by_side(block_op: BlockOp, threads: int) -> _Side:
    """The loop that leaves an input where it is, if enough is left for all threads to do."""
    best = _Side(None, 1)
    for dim, size in zip(block_op.dims, block_op.sizes, strict=True):
        if all(_moves(block_op, number, dim) for number in block_op.buffers if number < block_op.view.inputs):
            continue
        fitting = [n for n in range(1, _MOST_AT_ONCE + 1) if size % n == 0 and block_op.count // n * 2 >= threads]
        if fitting and max(fitting) > best.count:
            best = _Side(dim, max(fitting))
    return best


def _moves(block_op: BlockOp, number: int, dim: int) -> bool:
    return any(coefficient(expression, dim) != 0 for expression in block_op.view.maps[number].results)
