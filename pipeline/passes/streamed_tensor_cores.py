"""Streamed attention of 16-bit floats on tensor cores; see streamed_attention.

A warp has 16 queries. A thread has parts of two rows of every fragment of 16 x 8: `lane / 4` and 8 below it, two
neighbouring columns each. Fragments of the scores become those of the exponentials' product with the values as they
are, in registers.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.analysis.access import coefficient
from pipeline.analysis.attention import Attention
from pipeline.analysis.kernel_steps import Step
from pipeline.mlir import arith, gpu, ir, nvgpu, vector
from pipeline.passes.block_plan import is_aligned
from pipeline.passes.row_reductions import WARP
from pipeline.passes.streamed_attention import MOST_SHARED, Rows, Streamed, Tile, converted, number, shared_tile
from pipeline.passes.tensor_core_operands import Corner, half_of, load_matrices, rows_of_matrices
from pipeline.passes.thread_results import index, indices, unravel

_QUERIES, _THREADS, _PADDING = 64, 128, 8

#: The elements of 16 bytes.
_CHUNK = 8

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
        self.fill(
            self._queries,
            (tile.queries, _even(attention.width)),
            (tile.queries, attention.width),
            lambda row, depth: self.query(_plus(self.first, row), depth),
        )
        along_keys, along_depth = (tile.keys, self.count), (_even(attention.width), attention.width)
        self.keys = Copied(self, attention.scores, attention.of_keys, along_keys, along_depth, self.keys_are_columns)
        along_columns = (_even(attention.value_width), attention.value_width)
        self.values = Copied(self, attention.weighted, attention.of_values, along_keys, along_columns, False)
        if self.keys.is_wide:
            self._waiting = self.keys.fetch(index(0))

    def start(self) -> Rows:
        """See `Streamed`."""
        self._left = [
            load_matrices(
                self._queries, rows_of_matrices(Corner(self.row, 0, 16 * depth), self.lane, True, False), False
            )
            for depth in range(self.depths)
        ]
        none, nothing = number(float("-inf")), number(0.0)
        return Rows([none] * 2, [nothing] * 2, [_no_fragment()] * self.columns)

    def step(self, first: ir.Value, rows: Rows) -> Rows:
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
            fragments = [_multiply(left, one, total) for one, total in zip(right, fragments, strict=True)]
        if keys.is_wide:
            gpu.BarrierOp()
            keys.fetch(_plus(first, index(tile.keys)))
        rows, weights = self.renew(rows, [self._scores(fragments, half, first) for half in range(2)], _LANES)
        results = [self._scaled(fragment) for fragment in rows.results]
        if values.is_wide:
            nvgpu.DeviceAsyncWaitOp(under_way, numGroups=int(keys.is_wide))
            gpu.BarrierOp()
        for part in range(tile.keys // 16):
            left = self._weights(weights, part)
            right = self._right(values, 8 * self.columns, 16 * part)
            results = [_multiply(left, one, total) for one, total in zip(right, results, strict=True)]
        return Rows(rows.highest, rows.total, results)

    def _right(self, tile: Copied, length: int, depth: int) -> list[ir.Value]:
        """The right fragments of 16 along the sum, from `depth` on."""
        found = []
        for place in range(0, length, 16):
            row = rows_of_matrices(Corner(index(0), place, depth), self.lane, tile.along_sum, True)
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


class Copied:
    """A tile of keys or of values in shared memory: of both, dims are the keys and what is along one of them.

    Where what lies side by side in memory allows it, cp.async brings it, 16 bytes at a time, and zeros for what is
    beyond the last key; `transposed` says that the same place of neighbouring keys lies side by side.
    """

    def __init__(
        self,
        block: StreamedTensorCores,
        step: Step,
        operand: int,
        keys: tuple[int, int],
        along: tuple[int, int],
        transposed: bool,
    ):
        self._block, self._step, self._operand = block, step, operand
        self.transposed = transposed
        self.is_of_keys = step == block.attention.scores
        self.sizes, self.limits = ((along[0], keys[0]), (along[1], keys[1])) if transposed else (
            (keys[0], along[0]), (keys[1], along[1])
        )  # fmt: skip
        self.shared = shared_tile(*self.sizes, block.kind, _PADDING)
        self.is_wide = self._can_be_wide()

    @property
    def along_sum(self) -> bool:
        """Whether the sum of the product goes along rows of the tile."""
        return self.is_of_keys and not self.transposed

    def _can_be_wide(self) -> bool:
        """Whether 16 bytes of a row of the tile are side by side in memory, at a multiple of 16 bytes."""
        step, buffer = self._step, self._step.op.operands[self._operand]
        if step.sources[self._operand] is not None or ir.MemRefType(buffer.type).element_type != self._block.kind:
            return False
        if self.sizes[0] * self.sizes[1] // _CHUNK % self._block.tile.threads:
            return False
        *outer, last = step.loops.maps[self._operand].results
        if not isinstance(last, ir.AffineDimExpr) or self.limits[1] % _CHUNK or not is_aligned(buffer, _CHUNK):
            return False
        inner = ir.AffineDimExpr(last).position
        return inner == self._inner_loop() and all(coefficient(one, inner) == 0 for one in outer)

    def _inner_loop(self) -> int:
        """The loop along rows of the tile."""
        attention = self._block.attention
        if not self.is_of_keys:
            return attention.value_loop
        if self.transposed:
            return (attention.scores.large(2) or [])[attention.key]
        return next(loop for loop, reduces in enumerate(attention.scores.loops.reductions) if reduces)

    def fill(self, first: ir.Value, element: Callable[[ir.Value, ir.Value], ir.Value]) -> None:
        """Element by element, from the key `first` on; `element` takes a key and a place along it."""

        def at(outer: ir.Value, inner: ir.Value) -> ir.Value:
            place, along = (inner, outer) if self.transposed else (outer, inner)
            return element(_plus(first, place), along)

        limits = (self.limits[0], self.sizes[1]) if self.transposed else (self.sizes[0], self.limits[1])
        self._block.fill(self.shared, self.sizes, limits, at)

    def fetch(self, first: ir.Value) -> ir.Value:
        """Sets copies from the key `first` on under way; returns what to wait for."""
        chunks = self.sizes[0] * self.sizes[1] // _CHUNK
        threads = self._block.tile.threads
        tokens = [self._fetch_chunk(first, number_ * threads) for number_ in range(chunks // threads)]
        return nvgpu.DeviceAsyncCreateGroupOp(tokens).result

    def _fetch_chunk(self, first: ir.Value, start: int) -> ir.Value:
        outer, chunk = unravel(_plus(self._block.thread, index(start)), [self.sizes[0], self.sizes[1] // _CHUNK])
        inner = arith.MulIOp(chunk, index(_CHUNK)).result
        place, along = (inner, outer) if self.transposed else (outer, inner)
        key = _plus(first, place)
        keys, width = self.limits[::-1] if self.transposed else self.limits
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, key, index(keys)).result
        if width % 16:
            is_along = arith.CmpIOp(arith.CmpIPredicate.ult, along, index(width)).result
            inside = arith.AndIOp(inside, is_along).result
        size = arith.SelectOp(inside, index(_CHUNK), index(0)).result
        block, step = self._block, self._step
        loops = block.at_key(key, along) if self.is_of_keys else block.at_value(key, along)
        token = ir.Type.parse("!nvgpu.device.async.token")
        return nvgpu.DeviceAsyncCopyOp(
            self.shared,
            [outer, inner],
            step.op.operands[self._operand],
            indices(step.loops.maps[self._operand], loops),
            _CHUNK,
            srcElements=size,
            bypassL1=True,
            results=[token],
        ).result


def _no_fragment() -> ir.Value:
    kind = ir.VectorType.get([2, 2], ir.F32Type.get())
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get_f32(0.0))).result


def _multiply(left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
    return nvgpu.MmaSyncOp(total.type, left, right, total, [16, 8, 16]).result


def _plus(left: ir.Value, right: ir.Value) -> ir.Value:
    return arith.AddIOp(left, right).result
