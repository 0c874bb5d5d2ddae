"""Writes what a block of threads does for an attention whose scores are never stored; what map-to-threads emits.

A block has some queries and goes over the keys, tile by tile. It keeps the greatest score of each query so far, the sum
of the exponentials and the weighted sum of the values, both relative to that greatest score, and scales them when a
greater one comes (Milakov and Gimelshein's online softmax, as in FlashAttention). So what it needs does not depend on
the number of keys, and tiles of keys that a causal mask takes out are not looked at.

This module has what is common to both ways of multiplying: `streamed_fma` and `streamed_tensor_cores`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from pipeline.analysis.attention import Attention
from pipeline.analysis.kernel_steps import Step
from pipeline.mlir import arith, gpu, ir, math, memref, scf
from pipeline.passes.thread_results import Results, clone_block, index, indices, load, unravel

#: What a block may share without asking the driver for more.
MOST_SHARED = 48 * 1024

MOST_BLOCKS = 65535


@dataclass(frozen=True)
class Tile:
    """How many queries a block has, how many keys it looks at at a time, and how many threads it has."""

    queries: int
    keys: int
    threads: int

    def blocks(self, attention: Attention) -> int:
        """How many blocks an attention takes."""
        sizes = attention.sizes
        return prod(sizes[dim] for dim in attention.batch) * -(-attention.queries // self.queries)


@dataclass(frozen=True)
class Rows:
    """What a thread keeps of each of its rows: the greatest score, its part of the sum, its part of the result."""

    highest: list[ir.Value]
    total: list[ir.Value]
    results: list[ir.Value]

    @property
    def flat(self) -> list[ir.Value]:
        """All of it, as a loop hands it on."""
        return [*self.highest, *self.total, *self.results]

    def like(self, flat: Sequence[ir.Value]) -> Rows:
        """The inverse of `flat`."""
        rows = len(self.highest)
        return Rows(list(flat[:rows]), list(flat[rows : 2 * rows]), list(flat[2 * rows :]))


class Streamed(ABC):
    """Writes the kernel at the insertion point."""

    def __init__(self, attention: Attention, results: Results, tile: Tile):
        self.attention = attention
        self.results = results
        self.tile = tile
        self.thread = gpu.ThreadIdOp(gpu.Dimension.x).result
        self.count = attention.sizes[attention.key]
        self._place_block()

    def _place_block(self) -> None:
        """The block's place in the batch and its first query; the last queries, which may see most, come first."""
        attention, sizes = self.attention, self.attention.sizes
        tiles = -(-attention.queries // self.tile.queries)
        block = gpu.BlockIdOp(gpu.Dimension.x).result
        *batch, number = unravel(block, [*(sizes[dim] for dim in attention.batch), tiles])
        self.batch = dict(zip(attention.batch, batch, strict=True))
        number = arith.SubIOp(index(tiles - 1), number).result
        self.first = arith.MulIOp(number, index(self.tile.queries)).result

    def emit(self) -> None:
        """Everything."""
        self.load_queries()
        gpu.BarrierOp()
        start = self.start()
        loop = scf.ForOp(index(0), self._end_of_keys(), index(self.tile.keys), start.flat)
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
            return index(self.count)
        last = arith.MinUIOp(
            arith.AddIOp(self.first, index(self.tile.queries - 1)).result,
            index(self.attention.queries - 1),
        ).result
        end = arith.AddIOp(last, index(limit)).result
        return arith.MaxSIOp(arith.MinSIOp(end, index(self.count)).result, index(0)).result

    @abstractmethod
    def load_queries(self) -> None:
        """Brings the block's queries to shared memory."""

    @abstractmethod
    def start(self) -> Rows:
        """What a thread has before the first key."""

    @abstractmethod
    def step(self, first: ir.Value, rows: Rows) -> Rows:
        """A tile of keys, from `first` on."""

    @abstractmethod
    def finish(self, rows: Rows) -> None:
        """Writes the results."""

    # Elements

    def at_scores(self, query: ir.Value, key: ir.Value) -> list[ir.Value]:
        """The indices of a score, clamped into what there is."""
        at = dict(self.batch)
        if self.attention.query >= 0:
            at[self.attention.query] = clamped(query, self.attention.queries, self.tile.queries)
        at[self.attention.key] = clamped(key, self.count, self.tile.keys)
        return [at[dim] for dim in range(len(self.attention.sizes))]

    def query(self, place: ir.Value, depth: ir.Value) -> ir.Value:
        """An element of a query, from outside of the kernel or computed."""
        along = self._loops_of_scores(self.at_scores(place, index(0)), depth)
        return self._operand(self.attention.scores, self.attention.of_queries, along, None)

    def key(self, place: ir.Value, depth: ir.Value) -> ir.Value:
        """An element of a key."""
        return self._operand(self.attention.scores, self.attention.of_keys, self.at_key(place, depth), None)

    def at_key(self, place: ir.Value, depth: ir.Value) -> dict[int, ir.Value]:
        """The loops of the first product at an element of a key."""
        return self._loops_of_scores(self.at_scores(index(0), place), depth)

    def _loops_of_scores(self, at: list[ir.Value], depth: ir.Value) -> dict[int, ir.Value]:
        scores = self.attention.scores
        along = dict(zip(scores.large(2) or [], at, strict=True))
        (sums,) = [loop for loop, reduces in enumerate(scores.loops.reductions) if reduces]
        return {**along, sums: clamped(depth, self.attention.width, 0)}

    def value(self, place: ir.Value, column: ir.Value) -> ir.Value:
        """An element of a value; 0 beyond the last key, where a weight of 0 must not meet infinity."""
        value = self._operand(self.attention.weighted, self.attention.of_values, self.at_value(place, column), None)
        if self.count % self.tile.keys == 0:
            return value
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, place, index(self.count)).result
        return arith.SelectOp(inside, value, zero_of(value.type)).result

    def at_value(self, place: ir.Value, column: ir.Value) -> dict[int, ir.Value]:
        """The loops of the second product at an element of a value."""
        along = self._loops_of_weighted(self.at_scores(index(0), place))
        return {**along, self.attention.value_loop: clamped(column, self.attention.value_width, 0)}

    def _loops_of_weighted(self, at: list[ir.Value]) -> dict[int, ir.Value]:
        weights = 1 - self.attention.of_values
        return dict(zip(self.attention.weighted.large(weights) or [], at, strict=True))

    def masked(self, score: ir.Value, query: ir.Value, key: ir.Value) -> ir.Value:
        """What the softmax takes of a product of a query and a key; -inf for a key beyond the last one."""
        highest, at = self.attention.highest, self.at_scores(query, key)
        along = dict(zip(self.attention.loops_of_scores, at, strict=True))
        value = self._body(highest, along, score, number(float("-inf")))  # the greater one of it and -inf
        if self.count % self.tile.keys == 0:
            return value
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, key, index(self.count)).result
        return arith.SelectOp(inside, value, number(float("-inf"))).result

    def _computed(self, step: Step, along: dict[int, ir.Value], score: ir.Value | None) -> ir.Value:
        """An element of what a step computes, at a point of its loops; of the scores, `score`."""
        if step == self.attention.scores:
            assert score is not None
            return score
        return self._body(step, along, score, load_nothing(step))

    def _body(self, step: Step, along: dict[int, ir.Value], score: ir.Value | None, out: ir.Value) -> ir.Value:
        """What the body of a step makes of the elements at a point of its loops, and of its result's old element."""
        inputs = [self._operand(step, operand, along, score) for operand in range(step.loops.inputs)]
        counters = [along[loop] if loop in along else index(0) for loop in range(len(step.loops.sizes))]
        return clone_block(step.body, [*inputs, out], counters)[0]

    def _operand(self, step: Step, operand: int, along: dict[int, ir.Value], score: ir.Value | None) -> ir.Value:
        source, indexing = step.sources[operand], step.loops.maps[operand]
        if source is None:
            return load(step.op.operands[operand], indexing, along)
        pairs = zip(source.loops.maps[source.loops.inputs].results, indices(indexing, along), strict=True)
        there = {ir.AffineDimExpr(one).position: at for one, at in pairs if isinstance(one, ir.AffineDimExpr)}
        return self._computed(source, there, score)

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
        loop = scf.ForOp(self.thread, index(prod(sizes)), index(self.tile.threads))
        with ir.InsertionPoint(loop.body):
            at = unravel(loop.induction_variable, sizes[::-1] if by_columns else sizes)
            at = at[::-1] if by_columns else at
            value = converted(element(*at), kind)
            for place, limit, size in zip(at, limits, sizes, strict=True):
                if limit < size:
                    inside = arith.CmpIOp(arith.CmpIPredicate.ult, place, index(limit)).result
                    value = arith.SelectOp(inside, value, zero_of(kind)).result
            memref.StoreOp(value, shared, at)
            scf.YieldOp([])

    @property
    def keys_are_columns(self) -> bool:
        """Whether the same place of neighbouring keys is side by side in memory."""
        scores = self.attention.scores
        loop = (scores.large(2) or [])[self.attention.key]
        return scores.loops.maps[self.attention.of_keys].results[-1] == ir.AffineDimExpr.get(loop)

    # Rows

    def renew(self, rows: Rows, scores: Sequence[Sequence[ir.Value]], lanes: int) -> tuple[Rows, list[list[ir.Value]]]:
        """Takes in a tile's scores, a list for each of the thread's rows, which `lanes` neighbouring threads share.

        Returns what the thread has now, its results not yet scaled, and the exponentials; see `scale`.
        """
        highest, totals, weights = [], [], []
        self._scales = []
        for row, own in enumerate(scores):
            new = self.across(_reduce(arith.MaximumFOp, own), lanes, arith.MaximumFOp)
            new = arith.MaximumFOp(rows.highest[row], new).result
            is_none = arith.CmpFOp(arith.CmpFPredicate.OEQ, new, number(float("-inf"))).result
            base = arith.SelectOp(is_none, number(0.0), new).result  # -inf - -inf would be NaN
            self._scales.append(_exp_of_difference(rows.highest[row], base))
            weights.append([_exp_of_difference(score, base) for score in own])
            scaled = arith.MulFOp(rows.total[row], self._scales[-1]).result
            totals.append(arith.AddFOp(scaled, _reduce(arith.AddFOp, weights[-1])).result)
            highest.append(new)
        return Rows(highest, totals, rows.results), weights

    def scale(self, row: int, value: ir.Value) -> ir.Value:
        """A weighted sum relative to the row's greatest score before `renew`, relative to the one behind it."""
        return arith.MulFOp(value, self._scales[row]).result

    def across(self, value: ir.Value, lanes: int, op: Callable[..., ir.OpView]) -> ir.Value:
        """The combination of a number of each of `lanes` neighbouring threads."""
        word = ir.IntegerType.get_signless(32)
        distance = 1
        while distance < lanes:
            offset, width = (arith.ConstantOp(word, one).result for one in (distance, 32))
            other = gpu.ShuffleOp(value, offset, width, gpu.ShuffleMode.XOR).shuffleResult
            value = op(value, other).result
            distance *= 2
        return value

    def write(self, query: ir.Value, rows: Rows, row: int, lanes: int, values: list[tuple[ir.Value, ir.Value]]) -> None:
        """Writes (column, weighted sum) of a row, divided by the sum of all exponentials."""
        total = self.across(rows.total[row], lanes, arith.AddFOp)
        is_none = arith.CmpFOp(arith.CmpFPredicate.OEQ, rows.highest[row], number(float("-inf"))).result
        with _guarded(query, self.attention.queries, self.tile.queries):
            along = self._loops_of_weighted(self.at_scores(query, index(0)))
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
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, place, index(size)).result
            branch = scf.IfOp(inside)
            self._point = ir.InsertionPoint(branch.then_block)

    def __enter__(self) -> None:
        if self._point is not None:
            self._point.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._point is not None:
            scf.YieldOp([])
            self._point.__exit__(*error)


def clamped(place: ir.Value, size: int, step: int) -> ir.Value:
    """A place that is not beyond the last one; it is not anyway where tiles of `step` come out even."""
    return place if step and size % step == 0 else arith.MinUIOp(place, index(size - 1)).result


def number(value: float) -> ir.Value:
    """A constant of float32."""
    return arith.ConstantOp(ir.F32Type.get(), ir.FloatAttr.get_f32(value)).result


def zero_of(kind: ir.Type) -> ir.Value:
    """0.0 of a type."""
    return arith.ConstantOp(kind, ir.FloatAttr.get(kind, 0.0)).result


def converted(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A float as one of another width."""
    if value.type == kind:
        return value
    is_wider = ir.FloatType(kind).width > ir.FloatType(value.type).width
    return (arith.ExtFOp if is_wider else arith.TruncFOp)(kind, value).result


def load_nothing(step: Step) -> ir.Value:
    """What stands for the result's old element in the body of an elementwise step, which does not read it."""
    kind = step.element
    attribute = ir.FloatAttr.get(kind, 0.0) if isinstance(kind, ir.FloatType) else ir.IntegerAttr.get(kind, 0)
    return arith.ConstantOp(kind, attribute).result


def shared_tile(rows: int, columns: int, kind: ir.Type, padding: int) -> ir.Value:
    """Memory that the block shares, each row longer by some elements, so that a column lies in different banks."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    whole = ir.MemRefType.get([rows, columns + padding], kind, memory_space=space)
    return memref.AllocOp(whole, [], [], alignment=16).result


def _reduce(op: Callable[..., ir.OpView], values: Sequence[ir.Value]) -> ir.Value:
    total = values[0]
    for value in values[1:]:
        total = op(total, value).result
    return total


def _exp_of_difference(value: ir.Value, base: ir.Value) -> ir.Value:
    return math.ExpOp(arith.SubFOp(value, base).result).result
