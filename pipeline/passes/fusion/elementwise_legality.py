"""Whether a table of fusion rules lets two neighbouring ops be one op.

Ops are joined before groups form, so this looks ahead: an op that a product's epilogue takes is not joined with one
that it does not take, or neither could join the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pipeline.dialects.fusion import target_of
from pipeline.fusion_rules.op_facts import OpFacts
from pipeline.fusion_rules.op_words import MOVES
from pipeline.fusion_rules.reasons import LIMIT, OTHER_TARGET, RULE, Refusal
from pipeline.fusion_rules.rules import FusionRules, Role
from pipeline.ir.reshapes import RESHAPES_AND_CASTS
from pipeline.mlir import defining_op, ir


def why_not_join(rules: FusionRules, producer: ir.Operation, consumer: ir.Operation, operands: int) -> Refusal | None:
    """Why `producer` may not be computed in `consumer`, an op then of `operands` operands; None if it may."""
    first, second = OpFacts(producer), OpFacts(consumer)
    if target_of(producer) != target_of(consumer):
        names = [target_of(op) or rules.target for op in (producer, consumer)]
        return Refusal(OTHER_TARGET, f"it is for {names[0]}, the consumer for {names[1]}")
    table = rules.table(target_of(consumer))
    words = joined_words(first.words, second.words)
    if len(words) > table.limits.ops:
        return Refusal(LIMIT, f"together they are {len(words)} ops, table {table.target} takes {table.limits.ops}")
    if operands > table.limits.operands:
        return Refusal(
            LIMIT, f"together they have {operands} operands, table {table.target} takes {table.limits.operands}"
        )
    if table.takes_all_elementwise:
        return None
    reason = _Neighbours(table, first, second).why_not()
    return Refusal(RULE, reason) if reason else None


def joined_words(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """What two ops compute as one: a mere move counts only where both are moves."""
    words = [word for word in (*first, *second) if word not in MOVES]
    return words or [*first, *second]


class _Neighbours:
    """The question for two ops that go by a table with restrictions."""

    def __init__(self, table: FusionRules, producer: OpFacts, consumer: OpFacts):
        self.table = table
        self.producer = producer
        self.consumer = consumer
        computing = [op for op in (producer, consumer) if not all(word in MOVES for word in op.words)]
        self.counted = computing or [producer, consumer]

    def why_not(self) -> str | None:
        if self.consumer.kind == "reduction":
            return self._refused("reduction", "prologue", self.counted[:1])
        taken = False
        for anchor, role in self._anchors_that_take_one():
            reason = self._refused(anchor.kind, role, self.counted)
            if reason:
                return reason
            taken = True
        return None if taken else self._refused("elementwise", "epilogue", self.counted)

    def _anchors_that_take_one(self) -> Iterator[tuple[OpFacts, Role]]:
        """The anchors whose epilogue the producer or the consumer could join, and whose prologue the consumer could."""
        yield from self._anchors(self.producer, "epilogue", _producers, set())
        yield from self._anchors(self.consumer, "epilogue", _producers, {self.producer.op})
        yield from self._anchors(self.consumer, "prologue", _users, set())

    def _anchors(
        self,
        start: OpFacts,
        role: Role,
        neighbours: Callable[[ir.Operation], list[ir.Operation]],
        seen: set[ir.Operation],
    ) -> Iterator[tuple[OpFacts, Role]]:
        """Those that take `start`, at once or together with the elementwise ops in between."""
        waiting = [(op, [start]) for op in neighbours(start.op)]
        while waiting:
            op, between = waiting.pop()
            if op in seen:
                continue
            seen.add(op)
            if op.name in RESHAPES_AND_CASTS:
                waiting += [(other, between) for other in neighbours(op)]
            if not op.name.startswith("linalg.") or op.name == "linalg.fill":
                continue
            facts = OpFacts(op)
            if facts.kind == "elementwise":
                waiting += [(other, [*between, facts]) for other in neighbours(op)]
            elif self._is_anchor(facts) and self._refused(facts.kind, role, between) is None:
                yield facts, role

    def _is_anchor(self, op: OpFacts) -> bool:
        return self.table.why_not(op.kind, "anchor", op.words, op.dtype, op) is None

    def _refused(self, kind: str, role: Role, ops: Sequence[OpFacts]) -> str | None:
        reasons = (self.table.why_not(kind, role, op.words, op.dtype, op) for op in ops)
        return next(filter(None, reasons), None)


def _producers(op: ir.Operation) -> list[ir.Operation]:
    inputs = list(op.operands)[: len(op.operands) - len(op.results)]
    return [producer for producer in map(defining_op, inputs) if producer is not None]


def _users(op: ir.Operation) -> list[ir.Operation]:
    return [use.owner.operation for result in op.results for use in result.uses]
