"""Writes what a block of threads does for an attention whose scores are never stored; what map-to-threads emits.

A block has some queries and goes over the keys, tile by tile, with an online softmax. So what it needs does not depend
on the number of keys, and tiles of keys that a causal mask takes out are not looked at.

This module has what is common to both ways of multiplying: `fma_kernel` and `tensor_core_kernel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import prod

from pipeline.ir.constants import as_index, zero
from pipeline.mlir import arith, gpu, ir, memref, scf
from pipeline.passes.gpu.flash_attention.elements import AttentionTile, Elements, converted, number
from pipeline.passes.gpu.flash_attention.online_softmax import OnlineSoftmax, across
from pipeline.passes.gpu.flash_attention.pattern import Attention
from pipeline.passes.gpu.thread.thread_results import Results, unravel

#: What a block may share without asking the driver for more.
MOST_SHARED = 48 * 1024

MOST_BLOCKS = 65535


class Streamed(Elements, ABC):
    """Writes the kernel at the insertion point."""

    def __init__(self, attention: Attention, results: Results, tile: AttentionTile):
        super().__init__(attention, tile)
        self.results = results
        self.thread = gpu.ThreadIdOp(gpu.Dimension.x).result
        self._place_block()

    def _place_block(self) -> None:
        """The block's place in the batch and its first query; the last queries, which may see most, come first."""
        attention, sizes = self.attention, self.attention.sizes
        tiles = -(-attention.queries // self.tile.queries)
        block = gpu.BlockIdOp(gpu.Dimension.x).result
        *batch, number = unravel(block, [*(sizes[dim] for dim in attention.batch), tiles])
        self.batch = dict(zip(attention.batch, batch, strict=True))
        number = arith.SubIOp(as_index(tiles - 1), number).result
        self.first = arith.MulIOp(number, as_index(self.tile.queries)).result

    def emit(self) -> None:
        """Everything."""
        self.load_queries()
        gpu.BarrierOp()
        start = self.start()
        loop = scf.ForOp(as_index(0), self._end_of_keys(), as_index(self.tile.keys), start.flat)
        with ir.InsertionPoint(loop.body):
            first = loop.induction_variable
            rows = self.step(first, start.like(loop.inner_iter_args))
            gpu.BarrierOp()  # before the next tile overwrites this one
            scf.YieldOp(rows.flat)
        self.finish(start.like(loop.results))

    def _end_of_keys(self) -> ir.Value:
        """The end of the keys that one of the block's queries may see."""
        limit = self.attention.limit
        if limit is None:
            return as_index(self.count)
        last = arith.MinUIOp(
            arith.AddIOp(self.first, as_index(self.tile.queries - 1)).result,
            as_index(self.attention.queries - 1),
        ).result
        end = arith.AddIOp(last, as_index(limit)).result
        return arith.MaxSIOp(arith.MinSIOp(end, as_index(self.count)).result, as_index(0)).result

    @abstractmethod
    def load_queries(self) -> None:
        """Brings the block's queries to shared memory."""

    @abstractmethod
    def start(self) -> OnlineSoftmax:
        """What a thread has before the first key."""

    @abstractmethod
    def step(self, first: ir.Value, rows: OnlineSoftmax) -> OnlineSoftmax:
        """A tile of keys, from `first` on."""

    @abstractmethod
    def finish(self, rows: OnlineSoftmax) -> None:
        """Writes the results."""

    def fill(
        self,
        shared: ir.Value,
        sizes: tuple[int, int],
        limits: tuple[int, int],
        element: Callable[[ir.Value, ir.Value], ir.Value],
        by_columns: bool = False,
    ) -> None:
        """Fills a tile of shared memory with elements, by their two indices; with 0 from the limits on.

        Neighbouring threads take neighbours in a row, or in a column.
        """
        kind = ir.MemRefType(shared.type).element_type
        loop = scf.ForOp(self.thread, as_index(prod(sizes)), as_index(self.tile.threads))
        with ir.InsertionPoint(loop.body):
            at = unravel(loop.induction_variable, sizes[::-1] if by_columns else sizes)
            at = at[::-1] if by_columns else at
            value = converted(element(*at), kind)
            for place, limit, size in zip(at, limits, sizes, strict=True):
                if limit < size:
                    inside = arith.CmpIOp(arith.CmpIPredicate.ult, place, as_index(limit)).result
                    value = arith.SelectOp(inside, value, zero(kind)).result
            memref.StoreOp(value, shared, at)
            scf.YieldOp([])

    def write(
        self, query: ir.Value, rows: OnlineSoftmax, row: int, lanes: int, values: list[tuple[ir.Value, ir.Value]]
    ) -> None:
        """Writes (column, weighted sum) of a row, divided by the sum of all exponentials."""
        total = across(rows.total[row], lanes, arith.AddFOp)
        is_none = arith.CmpFOp(arith.CmpFPredicate.OEQ, rows.highest[row], number(float("-inf"))).result
        with _guarded(query, self.attention.queries, self.tile.queries):
            along = self.loops_of_weighted(self.at_scores(query, as_index(0)))
            for column, value in values:
                with _guarded(column, self.attention.value_width, 0):
                    result = arith.DivFOp(value, total).result
                    if self.attention.zero_if_masked:
                        result = arith.SelectOp(is_none, number(0.0), result).result
                    self.results.write({**along, self.attention.value_loop: column}, [result])


class _guarded:
    """A `with` block whose ops run if a place is inside; `step` divides what the place can be too large by."""

    def __init__(self, place: ir.Value, size: int, step: int):
        self._point: ir.InsertionPoint | None = None
        if step == 0 or size % step:
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, place, as_index(size)).result
            branch = scf.IfOp(inside)
            self._point = ir.InsertionPoint(branch.then_block)

    def __enter__(self) -> None:
        if self._point is not None:
            self._point.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._point is not None:
            scf.YieldOp([])
            self._point.__exit__(*error)


def shared_tile(rows: int, columns: int, kind: ir.Type, padding: int) -> ir.Value:
    """Memory that the block shares, each row longer by some elements, so that a column lies in different banks."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    whole = ir.MemRefType.get([rows, columns + padding], kind, memory_space=space)
    return memref.AllocOp(whole, [], [], alignment=16).result
