"""sink-consumers-into-branches: elementwise ops on the result of a branch are computed in both branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.code_motion import has_effects, needed_between, users, why_not_speculated
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import is_unused, replace
from pipeline.mlir import captured_values, defining_op, ir, remap_operands, scf, terminator
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class SinkConsumersIntoBranches(PatternPass):
    """Compute an elementwise consumer of an scf.if's results in both branches, if it fuses in one of them.

    One of the branches runs, so nothing is computed twice, and the result in between need not be stored. The consumer
    must be the only one of the results that it reads; what else it reads is computed in front of the branches. The
    results of loops are left alone: what uses them would run in every round. A moved consumer's own consumer may
    follow it.
    """

    name: ClassVar[str] = "sink-consumers-into-branches"
    anchor: ClassVar[str] = "func.func"

    @pattern("scf.if", users_first=True)
    def sink(self, branch: ir.Operation) -> bool:
        """r = if c { a } else { b }; y = f(r)   ->   y = if c { f(a) } else { f(b) }"""
        if not all(len(region.blocks) for region in branch.regions):
            return False
        latest = branch
        while (moved := self._move_one(latest)) is not None:
            latest = moved
        return latest is not branch

    def _move_one(self, branch: ir.Operation) -> ir.Operation | None:
        """Moves one consumer, if there is one that can; returns the new scf.if."""
        for op in users(branch):
            consumer = structured(op)
            if consumer is None or op.block != branch.block:
                continue
            reason = _why_not(consumer, branch)
            if reason is not None:
                self.missed(op, f"is not computed in the branches in front of it: {reason}")
                continue
            self.passed(op, "is computed in both branches")
            return _move(op, branch)
        return None


def _why_not(consumer: LinalgOp, branch: ir.Operation) -> str | None:
    op = consumer.op
    read = [value for value in op.operands if value in branch.results]
    if op.name != "linalg.generic" or not consumer.is_elementwise:
        return "it is not elementwise"
    if any(user != op for value in read for user in _users(value)):
        return "the result that it reads has other users"
    needed = needed_between(_others(op, branch), branch, op)
    if needed is None:
        return "it also reads what is computed from another result of the branches"
    if any(map(has_effects, needed)):
        return "what it reads has side effects"
    if any(map(why_not_speculated, needed)) and (has_effects(branch) or why_not_speculated(branch)):
        return "what it reads may trap, and cannot move in front of the branches"
    if not any(_fuses(consumer, branch, side) for side in (0, 1)):
        return "it fuses in none of them"
    return None


def _others(op: ir.Operation, branch: ir.Operation) -> list[ir.Value]:
    """What `op` reads that is no result of the branch."""
    return [value for value in captured_values(op) if value not in branch.results]


def _users(value: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]


def _fuses(consumer: LinalgOp, branch: ir.Operation, side: int) -> bool:
    """Whether what a branch yields to the consumer is computed there, for the consumer alone."""
    block = branch.regions[side].blocks[0]
    for number in range(consumer.inputs):
        value = consumer.op.operands[number]
        if value not in branch.results or not consumer.reads_once(number):
            continue
        yielded = _yielded(block)[ir.OpResult(value).result_number]
        producer = defining_op(yielded)
        if producer is not None and producer.block == block and producer.name.startswith("linalg."):
            return len(_users(yielded)) == 1
    return False


def _yielded(block: ir.Block) -> list[ir.Value]:
    return list(terminator(block).operands)


def _move(op: ir.Operation, branch: ir.Operation) -> ir.Operation:
    for producer in needed_between(_others(op, branch), branch, op) or []:
        producer.move_before(branch)
    kept = [result for result in branch.results if any(user != op for user in _users(result))]
    with branch.location, ir.InsertionPoint(branch):
        moved = scf.IfOp(branch.operands[0], [value.type for value in [*kept, *op.results]], has_else=True).operation
    for old, new in zip(branch.regions, moved.regions, strict=True):
        _fill(new.blocks[0], old.blocks[0], op, branch, kept)
    for before, after in zip(kept, moved.results, strict=False):
        before.replace_all_uses_with(after)
    replace(op, list(moved.results)[len(kept) :])
    assert all(map(is_unused, branch.results))
    branch.erase()
    return moved


def _fill(block: ir.Block, old: ir.Block, op: ir.Operation, branch: ir.Operation, kept: Sequence[ir.Value]) -> None:
    """Moves the ops of an old branch to a new one, and ends it with a copy of `op` on what it yields."""
    *ops, terminator = [inner.operation for inner in old.operations]
    for inner in ops:
        block.append(inner)
    yielded = dict(zip(branch.results, terminator.operands, strict=True))
    with op.location, ir.InsertionPoint(block):
        copy = op.clone()
        remap_operands(copy, yielded)
        scf.YieldOp([*(yielded[value] for value in kept), *copy.results])
