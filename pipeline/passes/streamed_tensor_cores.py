"""Streamed attention of 16-bit floats on tensor cores; see streamed_attention.

A warp has 16 queries. A thread has parts of two rows of every fragment of 16 x 8: `lane / 4` and 8 below it, two
neighbouring columns each. Fragments of the scores become those of the exponentials' product with the values as they
are, in registers.
"""

from __future__ import annotations

from pipeline.analysis.attention import Attention
from pipeline.mlir import arith, gpu, ir, nvgpu, vector
from pipeline.passes.row_reductions import WARP
from pipeline.passes.streamed_attention import MOST_SHARED, Rows, Streamed, Tile, converted, number, shared_tile
from pipeline.passes.tensor_core_operands import Corner, half_of, load_matrices
from pipeline.passes.thread_results import index

_QUERIES, _THREADS, _PADDING = 64, 128, 8

#: Keys of a tile, by preference; and the longest query and value whose fragments fit into registers.
_KEYS, _LONGEST = (64, 32), 128

#: The threads that have a row.
_LANES = 4


def element_of(attention: Attention) -> ir.Type | None:
    """The type that tensor cores multiply; None where queries, values and results are not of one 16-bit type."""
    queries = _outside(attention, attention.of_queries)
    values = attention.weighted.op.operands[attention.of_values]
    kinds = {str(ir.ShapedType(one.type).element_type) for one in (*queries, values)}
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
            found.append(step.op.operands[number_])
        else:
            pending += [(source, one) for one in range(source.loops.inputs)]
    return found


def choose_tile(attention: Attention) -> Tile | None:
    """None where there are no tensor cores for the types, or registers or shared memory do not suffice."""
    if element_of(attention) is None or max(attention.width, attention.value_width) > _LONGEST:
        return None
    for keys in _KEYS:
        rows = (_QUERIES + keys) * (_even(attention.width) + _PADDING)
        if 2 * (rows + keys * (_even(attention.value_width) + _PADDING)) <= MOST_SHARED:
            return Tile(_QUERIES, keys, _THREADS)
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
        self.lane = arith.RemUIOp(self.thread, index(WARP)).result
        warp = arith.DivUIOp(self.thread, index(WARP)).result
        self.row = arith.MulIOp(warp, index(16)).result
        self.depths, self.columns = _even(attention.width) // 16, _even(attention.value_width) // 8
        self._queries = shared_tile(tile.queries, _even(attention.width), kind, _PADDING)
        self._keys = shared_tile(tile.keys, _even(attention.width), kind, _PADDING)
        self._values = shared_tile(tile.keys, _even(attention.value_width), kind, _PADDING)
        self.fill(
            self._queries,
            (tile.queries, _even(attention.width)),
            (tile.queries, attention.width),
            lambda row, depth: self.query(_plus(self.first, row), depth),
        )

    def start(self) -> Rows:
        """See `Streamed`."""
        self._left = [
            load_matrices(self._queries, [], Corner(self.row, 0, 16 * depth), self.lane, True, False)
            for depth in range(self.depths)
        ]
        none, nothing = number(float("-inf")), number(0.0)
        return Rows([none] * 2, [nothing] * 2, [_no_fragment()] * self.columns)

    def step(self, first: ir.Value, rows: Rows) -> Rows:
        """See `Streamed`."""
        attention, tile = self.attention, self.tile
        self.fill(
            self._keys,
            (tile.keys, _even(attention.width)),
            (tile.keys, attention.width),
            lambda place, depth: self.key(_plus(first, place), depth),
            by_columns=self.keys_are_columns,
        )
        self.fill(
            self._values,
            (tile.keys, _even(attention.value_width)),
            (tile.keys, attention.value_width),
            lambda place, column: self.value(_plus(first, place), column),
        )
        gpu.BarrierOp()
        fragments = [_no_fragment()] * (tile.keys // 8)
        for depth, left in enumerate(self._left):
            right = self._right(self._keys, tile.keys, 16 * depth, along_sum=True)
            fragments = [_multiply(left, one, total) for one, total in zip(right, fragments, strict=True)]
        rows, weights = self.renew(rows, [self._scores(fragments, half, first) for half in range(2)], _LANES)
        results = [self._scaled(fragment) for fragment in rows.results]
        for part in range(tile.keys // 16):
            left = self._weights(weights, part)
            right = self._right(self._values, 8 * self.columns, 16 * part, along_sum=False)
            results = [_multiply(left, one, total) for one, total in zip(right, results, strict=True)]
        return Rows(rows.highest, rows.total, results)

    def _right(self, shared: ir.Value, length: int, depth: int, along_sum: bool) -> list[ir.Value]:
        """The right fragments of 16 along the sum, from `depth` on."""
        found = []
        for place in range(0, length, 16):
            pair = load_matrices(shared, [], Corner(index(0), place, depth), self.lane, along_sum, True)
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
                _plus(_plus(first, pair), index(8 * number_ + side)),
            )
            for number_, fragment in enumerate(fragments)
            for side in range(2)
        ]

    def _query(self, half: int) -> ir.Value:
        own = _plus(self.row, arith.DivUIOp(self.lane, index(4)).result)
        return _plus(self.first, _plus(own, index(8 * half)))

    def _pair(self) -> ir.Value:
        """The first of the thread's two columns in a fragment."""
        return arith.MulIOp(arith.RemUIOp(self.lane, index(4)).result, index(2)).result

    def _scaled(self, fragment: ir.Value) -> ir.Value:
        """A part of the result, relative to the greatest scores by now."""
        parts = [
            self.scale(half, vector.ExtractOp(fragment, [], [half, side]).result)
            for half in range(2)
            for side in range(2)
        ]
        return vector.FromElementsOp(fragment.type, parts).result

    def _weights(self, weights: list[list[ir.Value]], part: int) -> ir.Value:
        """The left fragment of 16 keys: rows first, then the halves of the sum."""
        parts = [
            converted(weights[half][2 * (2 * part + second) + side], self.kind)
            for second in range(2)
            for half in range(2)
            for side in range(2)
        ]
        return vector.FromElementsOp(ir.VectorType.get([4, 2], self.kind), parts).result

    def finish(self, rows: Rows) -> None:
        """See `Streamed`."""
        pair = self._pair()
        for half in range(2):
            values = [
                (_plus(pair, index(8 * number_ + side)), vector.ExtractOp(fragment, [], [half, side]).result)
                for number_, fragment in enumerate(rows.results)
                for side in range(2)
            ]
            self.write(self._query(half), rows, half, _LANES, values)


def _no_fragment() -> ir.Value:
    kind = ir.VectorType.get([2, 2], ir.F32Type.get())
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get_f32(0.0))).result


def _multiply(left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
    return nvgpu.MmaSyncOp(total.type, left, right, total, [16, 8, 16]).result


def _plus(left: ir.Value, right: ir.Value) -> ir.Value:
    return arith.AddIOp(left, right).result
