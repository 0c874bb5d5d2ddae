"""Streamed attention of 16-bit floats on tensor cores; see `kernel`.

A warp has 16 queries. A thread has parts of two rows of every fragment of 16 x 8: `lane / 4` and 8 below it, two
neighbouring columns each. Fragments of the scores become those of the exponentials' product with the values as they
are, in registers.
"""

from __future__ import annotations

from pipeline.ir.constants import as_index
from pipeline.mlir import arith, gpu, ir, nvgpu, vector
from pipeline.passes.gpu.flash_attention.async_copies import PADDING, Copied
from pipeline.passes.gpu.flash_attention.elements import AttentionTile, converted, number
from pipeline.passes.gpu.flash_attention.kernel import MOST_SHARED, Streamed, shared_tile
from pipeline.passes.gpu.flash_attention.online_softmax import OnlineSoftmax, Renewed, renew
from pipeline.passes.gpu.flash_attention.pattern import Attention
from pipeline.passes.gpu.matmul.mma_operands import Corner, half_of, load_matrices, rows_of_matrices
from pipeline.passes.gpu.thread.thread_results import plus
from pipeline.passes.gpu.thread.warp_reduction import WARP

_QUERIES, _THREADS = 64, 128

#: Keys of a tile, by preference; and the longest query and value whose fragments fit into registers.
_KEYS, _LONGEST = (64, 32), 128

#: The threads that have a row.
_LANES = 4


def element_of(attention: Attention) -> ir.Type | None:
    """The type that tensor cores multiply; None where queries, values and results are not of one 16-bit type."""
    queries = _outside(attention, attention.of_queries)
    values = attention.weighted.view.operands[attention.of_values]
    kinds = {str(ir.ShapedType(value.type).element_type) for value in (*queries, values)}
    if len(kinds) != 1 or kinds.pop() not in ("f16", "bf16"):
        return None
    return ir.ShapedType(values.type).element_type


def _outside(attention: Attention, operand: int) -> list[ir.Value]:
    """What an operand of the scores is computed from that comes from outside of the kernel."""
    found, pending = [], [(attention.scores, operand)]
    while pending:
        step, number_ = pending.pop()
        source = step.sources[number_]
        if source is None:
            found.append(step.view.operands[number_])
        else:
            pending += [(source, source_operand) for source_operand in range(source.view.inputs)]
    return found


def choose_tile(attention: Attention) -> AttentionTile | None:
    """None where there are no tensor cores for the types, or registers or shared memory do not suffice."""
    if element_of(attention) is None or max(attention.width, attention.value_width) > _LONGEST:
        return None
    for keys in _KEYS:
        rows = (_QUERIES + keys) * (_even(attention.width) + PADDING)
        if 2 * (rows + keys * (_even(attention.value_width) + PADDING)) <= MOST_SHARED:
            return AttentionTile(_QUERIES, keys, _THREADS)
    return None


def _even(size: int) -> int:
    return -(-size // 16) * 16


class StreamedTensorCores(Streamed):
    """Writes the kernel."""

    def load_queries(self) -> None:
        """See `Streamed`."""
        attention, tile = self.attention, self.tile
        kind = element_of(attention)
        assert kind is not None
        self.kind = kind
        self.lane = arith.RemUIOp(self.thread, as_index(WARP)).result
        warp = arith.DivUIOp(self.thread, as_index(WARP)).result
        self.row = arith.MulIOp(warp, as_index(16)).result
        self.depths, self.columns = _even(attention.width) // 16, _even(attention.value_width) // 8
        self._queries = shared_tile(tile.queries, _even(attention.width), kind, PADDING)
        self.fill(
            self._queries,
            (tile.queries, _even(attention.width)),
            (tile.queries, attention.width),
            lambda row, depth: self.query(plus(self.first, row), depth),
        )
        along_keys, along_depth = (tile.keys, self.count), (_even(attention.width), attention.width)
        by_columns = self.keys_are_columns
        self.keys = Copied(self, kind, attention.scores, attention.of_keys, along_keys, along_depth, by_columns)
        along_columns = (_even(attention.value_width), attention.value_width)
        self.values = Copied(self, kind, attention.weighted, attention.of_values, along_keys, along_columns, False)
        if self.keys.is_wide:
            self._waiting = self.keys.fetch(as_index(0))

    def start(self) -> OnlineSoftmax:
        """See `Streamed`."""
        self._left = [
            load_matrices(
                self._queries, rows_of_matrices(Corner(self.row, 0, 16 * depth), self.lane, True, False), False
            )
            for depth in range(self.depths)
        ]
        none, nothing = number(float("-inf")), number(0.0)
        return OnlineSoftmax([none] * 2, [nothing] * 2, [_no_fragment()] * self.columns)

    def step(self, first: ir.Value, rows: OnlineSoftmax) -> OnlineSoftmax:
        """See `Streamed`.

        The values are under way while the scores are computed, the next keys while the values are multiplied.
        """
        keys, values, tile = self.keys, self.values, self.tile
        if not keys.is_wide:
            keys.fill(first, self.key)
        if values.is_wide:
            under_way = values.fetch(first)
        else:
            values.fill(first, self.value)
        if keys.is_wide:
            nvgpu.DeviceAsyncWaitOp(self._waiting, numGroups=int(values.is_wide))
        gpu.BarrierOp()
        fragments = [_no_fragment()] * (tile.keys // 8)
        for depth, left in enumerate(self._left):
            right = self._right(keys, tile.keys, 16 * depth)
            fragments = [_multiply(left, factor, total) for factor, total in zip(right, fragments, strict=True)]
        if keys.is_wide:
            gpu.BarrierOp()
            keys.fetch(plus(first, as_index(tile.keys)))
        renewed = renew(rows, [self._scores(fragments, half, first) for half in range(2)], _LANES, True)
        rows = renewed.rows
        results = [_scaled(fragment, renewed) for fragment in rows.results]
        if values.is_wide:
            nvgpu.DeviceAsyncWaitOp(under_way, numGroups=int(keys.is_wide))
            gpu.BarrierOp()
        for part in range(tile.keys // 16):
            left = self._weights(renewed.weights, part)
            right = self._right(values, 8 * self.columns, 16 * part)
            results = [_multiply(left, factor, total) for factor, total in zip(right, results, strict=True)]
        return OnlineSoftmax(rows.highest, rows.total, results)

    def _right(self, tile: Copied, length: int, depth: int) -> list[ir.Value]:
        """The right fragments of 16 along the sum, from `depth` on."""
        found = []
        for place in range(0, length, 16):
            row = rows_of_matrices(Corner(as_index(0), place, depth), self.lane, tile.along_sum, True)
            pair = load_matrices(tile.shared, row, not tile.along_sum)
            found += [half_of(pair, 0), half_of(pair, 1)]
        return found

    def _scores(self, fragments: list[ir.Value], half: int, first: ir.Value) -> list[ir.Value]:
        """The thread's scores in one of its two rows."""
        query = self._query(half)
        pair = self._pair()
        return [
            self.masked(
                vector.ExtractOp(fragment, [], [half, side]).result,
                query,
                plus(plus(first, pair), as_index(8 * number_ + side)),
            )
            for number_, fragment in enumerate(fragments)
            for side in range(2)
        ]

    def _query(self, half: int) -> ir.Value:
        own = plus(self.row, arith.DivUIOp(self.lane, as_index(4)).result)
        return plus(self.first, plus(own, as_index(8 * half)))

    def _pair(self) -> ir.Value:
        """The first of the thread's two columns in a fragment."""
        return arith.MulIOp(arith.RemUIOp(self.lane, as_index(4)).result, as_index(2)).result

    def _weights(self, weights: list[list[ir.Value]], part: int) -> ir.Value:
        """The left fragment of 16 keys: rows first, then the halves of the sum."""
        parts = [
            converted(weights[half][2 * (2 * part + second) + side], self.kind)
            for second in range(2)
            for half in range(2)
            for side in range(2)
        ]
        return vector.FromElementsOp(ir.VectorType.get([4, 2], self.kind), parts).result

    def finish(self, rows: OnlineSoftmax) -> None:
        """See `Streamed`."""
        pair = self._pair()
        for half in range(2):
            values = [
                (plus(pair, as_index(8 * number_ + side)), vector.ExtractOp(fragment, [], [half, side]).result)
                for number_, fragment in enumerate(rows.results)
                for side in range(2)
            ]
            self.write(self._query(half), rows, half, _LANES, values)


def _scaled(fragment: ir.Value, renewed: Renewed) -> ir.Value:
    """A part of the result, relative to the greatest scores by now."""
    parts = [
        renewed.scale(half, vector.ExtractOp(fragment, [], [half, side]).result)
        for half in range(2)
        for side in range(2)
    ]
    return vector.FromElementsOp(fragment.type, parts).result


def _no_fragment() -> ir.Value:
    kind = ir.VectorType.get([2, 2], ir.F32Type.get())
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get_f32(0.0))).result


def _multiply(left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
    return nvgpu.MmaSyncOp(total.type, left, right, total, [16, 8, 16]).result
