"""Streamed attention in float32 on ordinary cores; see `kernel`.

Threads lie in 16 columns; a thread has every 16th row of the block's queries, and every 16th key of a tile, or column
of the result. Exponentials go from the threads that have them to those that need them through shared memory.
"""

from __future__ import annotations

from pipeline.ir.constants import as_index
from pipeline.mlir import arith, gpu, ir, math, memref, scf
from pipeline.passes.gpu.flash_attention.elements import AttentionTile, number
from pipeline.passes.gpu.flash_attention.kernel import MOST_SHARED, Streamed, shared_tile
from pipeline.passes.gpu.flash_attention.online_softmax import OnlineSoftmax, renew
from pipeline.passes.gpu.flash_attention.pattern import Attention
from pipeline.passes.gpu.thread.thread_results import plus

_ACROSS, _THREADS = 16, 256

#: Queries and keys of a tile, by preference.
_TILES = ((64, 32), (32, 32), (32, 16), (16, 16))


def choose_tile(attention: Attention) -> AttentionTile | None:
    """The largest tile for which shared memory suffices; none larger than the queries need."""
    for queries, keys in _TILES:
        is_wasted = queries > _TILES[-1][0] and queries >= 2 * attention.queries
        if not is_wasted and _shared(attention, queries, keys) <= MOST_SHARED:
            return AttentionTile(queries, keys, _THREADS)
    return None


def _shared(attention: Attention, queries: int, keys: int) -> int:
    """The bytes that a block shares."""
    of_keys = keys * (attention.width + 1) + keys * (_even(attention.value_width) + 1)
    return 4 * (queries * (attention.width + 1) + of_keys + queries * (keys + 1))


def _even(size: int) -> int:
    return -(-size // _ACROSS) * _ACROSS


class StreamedFma(Streamed):
    """Writes the kernel."""

    def load_queries(self) -> None:
        """See `Streamed`."""
        attention, tile, kind = self.attention, self.tile, ir.F32Type.get()
        self.down = arith.DivUIOp(self.thread, as_index(_ACROSS)).result
        self.across_ = arith.RemUIOp(self.thread, as_index(_ACROSS)).result
        self.rows = tile.queries // _ACROSS
        self.columns = _even(attention.value_width) // _ACROSS
        self._queries = shared_tile(tile.queries, attention.width, kind, 1)
        self._keys = shared_tile(tile.keys, attention.width, kind, 1)
        self._values = shared_tile(tile.keys, _even(attention.value_width), kind, 1)
        self._weights = shared_tile(tile.queries, tile.keys, kind, 1)
        sizes = (tile.queries, attention.width)
        self.fill(self._queries, sizes, sizes, lambda row, depth: self.query(plus(self.first, row), depth))

    def start(self) -> OnlineSoftmax:
        """See `Streamed`."""
        none, nothing = number(float("-inf")), number(0.0)
        return OnlineSoftmax([none] * self.rows, [nothing] * self.rows, [nothing] * (self.rows * self.columns))

    def _row(self, number_: int) -> ir.Value:
        """The thread's row in the tile."""
        return plus(self.down, as_index(number_ * _ACROSS))

    def _column(self, number_: int) -> ir.Value:
        return plus(self.across_, as_index(number_ * _ACROSS))

    def step(self, first: ir.Value, rows: OnlineSoftmax) -> OnlineSoftmax:
        """See `Streamed`."""
        attention, tile = self.attention, self.tile
        whole = (tile.keys, attention.width)
        by_columns = self.keys_are_columns
        self.fill(self._keys, whole, whole, lambda place, depth: self.key(plus(first, place), depth), by_columns)
        sizes = (tile.keys, _even(attention.value_width))
        limits = (tile.keys, attention.value_width)
        self.fill(self._values, sizes, limits, lambda place, column: self.value(plus(first, place), column))
        gpu.BarrierOp()
        columns = tile.keys // _ACROSS
        products = self._multiply(attention.width, self._queries, self._keys, columns, transposed=True)
        scores = [
            [
                self.masked(
                    products[row * columns + column],
                    plus(self.first, self._row(row)),
                    plus(first, self._column(column)),
                )
                for column in range(columns)
            ]
            for row in range(self.rows)
        ]
        renewed = renew(rows, scores, _ACROSS)
        rows = renewed.rows
        for row, own in enumerate(renewed.weights):
            for column, weight in enumerate(own):
                memref.StoreOp(weight, self._weights, [self._row(row), self._column(column)])
        gpu.BarrierOp()
        scaled = [renewed.scale(number_ // self.columns, result) for number_, result in enumerate(rows.results)]
        results = self._multiply(tile.keys, self._weights, self._values, self.columns, transposed=False, start=scaled)
        return OnlineSoftmax(rows.highest, rows.total, results)

    def _multiply(
        self,
        length: int,
        left: ir.Value,
        right: ir.Value,
        columns: int,
        transposed: bool,
        start: list[ir.Value] | None = None,
    ) -> list[ir.Value]:
        """The thread's part of left @ right, or of left @ right^T, both in shared memory."""
        begin = start or [number(0.0)] * (self.rows * columns)
        loop = scf.ForOp(as_index(0), as_index(length), as_index(1), begin)
        with ir.InsertionPoint(loop.body):
            inner = loop.induction_variable
            of_rows = [memref.LoadOp(left, [self._row(row), inner]).result for row in range(self.rows)]
            places = [self._column(column) for column in range(columns)]
            ats = [[place, inner] if transposed else [inner, place] for place in places]
            of_columns = [memref.LoadOp(right, at).result for at in ats]
            pairs = [(one, other) for one in of_rows for other in of_columns]
            totals = zip(pairs, loop.inner_iter_args, strict=True)
            scf.YieldOp([math.FmaOp(one, other, total).result for (one, other), total in totals])
        return list(loop.results)

    def finish(self, rows: OnlineSoftmax) -> None:
        """See `Streamed`."""
        for row in range(self.rows):
            own = rows.results[row * self.columns : (row + 1) * self.columns]
            values = [(self._column(column), value) for column, value in enumerate(own)]
            self.write(plus(self.first, self._row(row)), rows, row, _ACROSS, values)
