"""What a block of threads sees of an attention: which queries and keys, and an element of each, loaded or computed.

Queries, keys, values and scores may be computed from what the kernel reads; then so is each element that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pipeline.ir.constants import as_index, zero
from pipeline.ir.rewriting import copy_body
from pipeline.mlir import arith, ir
from pipeline.passes.gpu.flash_attention.op_graph import GenericStep
from pipeline.passes.gpu.flash_attention.pattern import Attention
from pipeline.passes.gpu.thread.thread_results import indices, load


@dataclass(frozen=True)
class AttentionTile:
    """How many queries a block has, how many keys it looks at at a time, and how many threads it has."""

    queries: int
    keys: int
    threads: int

    def blocks(self, attention: Attention) -> int:
        """How many blocks an attention takes."""
        sizes = attention.sizes
        return prod(sizes[dim] for dim in attention.batch) * -(-attention.queries // self.queries)


class Elements:
    """The elements that a block needs, at the insertion point.

    Attributes:
        count: how many keys there are.
        batch: the block's place in the batch, by the loops of the scores.
    """

    def __init__(self, attention: Attention, tile: AttentionTile):
        self.attention = attention
        self.tile = tile
        self.count = attention.sizes[attention.key]
        self.batch: dict[int, ir.Value] = {}

    def at_scores(self, query: ir.Value, key: ir.Value) -> list[ir.Value]:
        """The indices of a score, clamped into what there is."""
        at = dict(self.batch)
        if self.attention.query >= 0:
            at[self.attention.query] = clamped(query, self.attention.queries, self.tile.queries)
        at[self.attention.key] = clamped(key, self.count, self.tile.keys)
        return [at[dim] for dim in range(len(self.attention.sizes))]

    def query(self, place: ir.Value, depth: ir.Value) -> ir.Value:
        """An element of a query, from outside of the kernel or computed."""
        along = self._loops_of_scores(self.at_scores(place, as_index(0)), depth)
        return self._operand(self.attention.scores, self.attention.of_queries, along, None)

    def key(self, place: ir.Value, depth: ir.Value) -> ir.Value:
        """An element of a key."""
        return self._operand(self.attention.scores, self.attention.of_keys, self.at_key(place, depth), None)

    def at_key(self, place: ir.Value, depth: ir.Value) -> dict[int, ir.Value]:
        """The loops of the first product at an element of a key."""
        return self._loops_of_scores(self.at_scores(as_index(0), place), depth)

    def _loops_of_scores(self, at: list[ir.Value], depth: ir.Value) -> dict[int, ir.Value]:
        scores = self.attention.scores
        along = dict(zip(scores.large(2) or [], at, strict=True))
        (sums,) = [loop for loop, reduces in enumerate(scores.view.reductions) if reduces]
        return {**along, sums: clamped(depth, self.attention.width, 0)}

    def value(self, place: ir.Value, column: ir.Value) -> ir.Value:
        """An element of a value; 0 beyond the last key, where a weight of 0 must not meet infinity."""
        value = self._operand(self.attention.weighted, self.attention.of_values, self.at_value(place, column), None)
        if self.count % self.tile.keys == 0:
            return value
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, place, as_index(self.count)).result
        return arith.SelectOp(inside, value, zero(value.type)).result

    def at_value(self, place: ir.Value, column: ir.Value) -> dict[int, ir.Value]:
        """The loops of the second product at an element of a value."""
        along = self.loops_of_weighted(self.at_scores(as_index(0), place))
        return {**along, self.attention.value_loop: clamped(column, self.attention.value_width, 0)}

    def loops_of_weighted(self, at: list[ir.Value]) -> dict[int, ir.Value]:
        """The loops of the second product, but that along a value, at the indices of a score."""
        weights = 1 - self.attention.of_values
        return dict(zip(self.attention.weighted.large(weights) or [], at, strict=True))

    def masked(self, score: ir.Value, query: ir.Value, key: ir.Value) -> ir.Value:
        """What the softmax takes of a product of a query and a key; -inf for a key beyond the last one."""
        highest, at = self.attention.highest, self.at_scores(query, key)
        along = dict(zip(self.attention.loops_of_scores, at, strict=True))
        value = self._body(highest, along, score, number(float("-inf")))  # the greater one of it and -inf
        if self.count % self.tile.keys == 0:
            return value
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, key, as_index(self.count)).result
        return arith.SelectOp(inside, value, number(float("-inf"))).result

    def _computed(self, step: GenericStep, along: dict[int, ir.Value], score: ir.Value | None) -> ir.Value:
        """An element of what a step computes, at a point of its loops; of the scores, `score`."""
        if step == self.attention.scores:
            assert score is not None
            return score
        return self._body(step, along, score, load_nothing(step))

    def _body(self, step: GenericStep, along: dict[int, ir.Value], score: ir.Value | None, out: ir.Value) -> ir.Value:
        """What the body of a step makes of the elements at a point of its loops, and of its result's old element."""
        inputs = [self._operand(step, operand, along, score) for operand in range(step.view.inputs)]
        counters = [along[loop] if loop in along else as_index(0) for loop in range(step.view.loops)]
        return copy_body(step.view, [*inputs, out], counters.__getitem__)[0]

    def _operand(self, step: GenericStep, operand: int, along: dict[int, ir.Value], score: ir.Value | None) -> ir.Value:
        source, indexing = step.sources[operand], step.view.maps[operand]
        if source is None:
            return load(step.view.operands[operand], indexing, along)
        pairs = zip(source.view.maps[source.view.inputs].results, indices(indexing, along), strict=True)
        there = {
            ir.AffineDimExpr(expression).position: at
            for expression, at in pairs
            if isinstance(expression, ir.AffineDimExpr)
        }
        return self._computed(source, there, score)

    @property
    def keys_are_columns(self) -> bool:
        """Whether the same place of neighbouring keys is side by side in memory."""
        scores = self.attention.scores
        loop = (scores.large(2) or [])[self.attention.key]
        return scores.view.maps[self.attention.of_keys].results[-1] == ir.AffineDimExpr.get(loop)


def clamped(place: ir.Value, size: int, step: int) -> ir.Value:
    """A place that is not beyond the last one; it is not anyway where tiles of `step` come out even."""
    return place if step and size % step == 0 else arith.MinUIOp(place, as_index(size - 1)).result


def number(value: float) -> ir.Value:
    """A constant of float32."""
    return arith.ConstantOp(ir.F32Type.get(), ir.FloatAttr.get_f32(value)).result


def converted(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A float as one of another width."""
    if value.type == kind:
        return value
    is_wider = ir.FloatType(kind).width > ir.FloatType(value.type).width
    return (arith.ExtFOp if is_wider else arith.TruncFOp)(kind, value).result


def load_nothing(step: GenericStep) -> ir.Value:
    """What stands for the result's old element in the body of an elementwise step, which does not read it."""
    kind = step.element
    attribute = ir.FloatAttr.get(kind, 0.0) if isinstance(kind, ir.FloatType) else ir.IntegerAttr.get(kind, 0)
    return arith.ConstantOp(kind, attribute).result
