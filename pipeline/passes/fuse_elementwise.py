"""fuse-elementwise: elementwise producers are computed where they are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.cost import CHEAP_BODY, body_cost
from pipeline.analysis.structured import Structured, reads_input_again, structured
from pipeline.mlir import affine, defining_op, ir, remap_operands, walk
from pipeline.passes.base import Pass
from pipeline.passes.rewriting import before, build_generic, is_unused


@dataclass(frozen=True)
class FuseElementwise(Pass):
    """Compute an elementwise linalg op inside of the linalg.generic that uses its result.

    A producer moves into its one consumer, an elementwise op or a reduction in the same block, if every element is then
    still computed once. What only moves or converts elements moves into every consumer; what costs next to nothing may
    be computed several times in a broadcast. Nothing moves into a contraction, a convolution or a pool, which read an
    input again and again.
    """

    name: ClassVar[str] = "fuse-elementwise"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Fuses what it can in one function, last consumers first."""
        pending = dict.fromkeys(reversed(walk(op, "linalg.generic")))
        while pending:
            consumer = next(iter(pending))
            del pending[consumer]
            self._fuse_into(consumer, pending)
        for left in reversed(walk(op, "linalg.generic", "linalg.transpose", "linalg.broadcast", "linalg.fill")):
            if all(map(is_unused, left.results)):
                left.erase()

    def _fuse_into(self, consumer: ir.Operation, pending: dict[ir.Operation, None]) -> None:
        """Fuses producers of `consumer`, then theirs, until there are none left; unused ones are no longer pending."""
        refused: set[ir.Operation] = set()
        while True:
            view = structured(consumer)
            assert view is not None
            operand = next((o for o in range(view.inputs) if self._is_fusible(view, o, refused)), None)
            if operand is None:
                return
            producer = structured(defining_op(consumer.operands[operand]))
            assert producer is not None
            self.passed(consumer, f"computes its operand {operand}, {producer.op.name}, itself")
            consumer = _fuse(view, operand, producer)
            if is_unused(producer.op.results[0]):
                pending.pop(producer.op, None)
                producer.op.erase()

    def _is_fusible(self, consumer: Structured, operand: int, refused: set[ir.Operation]) -> bool:
        op = defining_op(consumer.op.operands[operand])
        producer = structured(op)
        if producer is None or op in refused:
            return False
        reason = _why_not(consumer, operand, producer)
        if reason is not None:
            refused.add(producer.op)
            self.missed(consumer.op, f"does not compute its operand {operand}, {producer.op.name}, itself: {reason}")
        return reason is None


def _why_not(consumer: Structured, operand: int, producer: Structured) -> str | None:
    """Why the producer is not computed in the consumer; None if it is."""
    if len(producer.op.results) != 1 or not producer.is_elementwise:
        return "it is not elementwise with one result"
    if producer.op.parent != consumer.op.parent or producer.op.block != consumer.op.block:
        return "it is in another block"
    if reads_input_again(consumer):
        return "the consumer reads its input again and again"
    cost = body_cost(producer)
    users = {use.owner.operation for use in producer.op.results[0].uses}
    if len(users) > 1 and cost > 0:
        return f"it has {len(users)} users"
    if not consumer.reads_once(operand) and cost > CHEAP_BODY:
        return "it would be computed several times for each element"
    return None


def _fuse(consumer: Structured, operand: int, producer: Structured) -> ir.Operation:
    """consumer(.., producer(a, b), ..) -> consumer'(.., a, b, ..)."""
    into = _loops_of_producer(consumer.maps[operand], producer)
    others = [number for number in range(consumer.inputs) if number != operand]
    inputs = [consumer.op.operands[number] for number in others] + list(producer.op.operands)[: producer.inputs]
    composed = [_compose(indexing, into) for indexing in producer.maps[: producer.inputs]]
    maps = [consumer.maps[number] for number in others] + composed + list(consumer.maps[consumer.inputs :])
    outputs = list(consumer.op.operands)[consumer.inputs :]

    def body(arguments: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        known = dict(zip(producer.body.arguments, arguments[len(others) :], strict=False))
        value = _inline(producer, known, into)[0]
        known = {consumer.body.arguments[number]: arguments[place] for place, number in enumerate(others)}
        known[consumer.body.arguments[operand]] = value
        firsts = consumer.inputs, len(inputs)
        known.update(zip(list(consumer.body.arguments)[firsts[0] :], arguments[firsts[1] :], strict=True))
        return _inline(consumer, known, ir.AffineMap.get_identity(consumer.loops))

    kinds = [f"#linalg.iterator_type<{'reduction' if reduction else 'parallel'}>" for reduction in consumer.reductions]
    with before(consumer.op):
        fused = build_generic(inputs, outputs, maps, list(map(ir.Attribute.parse, kinds)), body)
    for old, new in zip(consumer.op.results, fused.results, strict=True):
        old.replace_all_uses_with(new)
    consumer.op.erase()
    return fused


def _loops_of_producer(indexing: ir.AffineMap, producer: Structured) -> ir.AffineMap:
    """From the consumer's loops to the producer's: the inverse of how it writes after how the consumer reads."""
    written = [ir.AffineDimExpr(expression).position for expression in producer.maps[producer.inputs].results]
    results = [indexing.results[written.index(loop)] for loop in range(producer.loops)]
    return ir.AffineMap.get(indexing.n_dims, 0, results)


def _compose(indexing: ir.AffineMap, into: ir.AffineMap) -> ir.AffineMap:
    return ir.AffineMap.get(into.n_dims, 0, [expression.compose(into) for expression in indexing.results])


def _inline(view: Structured, known: dict[ir.Value, ir.Value], into: ir.AffineMap) -> list[ir.Value]:
    """Copies a body to the insertion point; `into` says what its loops are in terms of those around."""
    for op in view.body_ops:
        if op.name == "linalg.index":
            known[op.results[0]] = _loop_index(op, into)
            continue
        copy = op.clone()
        remap_operands(copy, known)
        known.update(zip(op.results, copy.results, strict=True))
    return [known.get(value, value) for value in view.yielded]


def _loop_index(op: ir.Operation, into: ir.AffineMap) -> ir.Value:
    """linalg.index of the producer's loop, in terms of the consumer's loops."""
    expression = into.results[ir.IntegerAttr(op.attributes["dim"]).value]
    number = ir.IntegerType.get_signless(64)
    loops = [
        ir.Operation.create(
            "linalg.index", results=[ir.IndexType.get()], attributes={"dim": ir.IntegerAttr.get(number, dim)}
        ).result
        for dim in range(into.n_dims)
    ]
    if isinstance(expression, ir.AffineDimExpr):
        return loops[ir.AffineDimExpr(expression).position]
    return affine.AffineApplyOp(ir.AffineMap.get(into.n_dims, 0, [expression]), loops).result
