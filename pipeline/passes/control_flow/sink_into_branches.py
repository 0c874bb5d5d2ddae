"""sink-into-branches: what one branch alone needs is computed there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.body_cost import CHEAP_BODY, body_cost
from pipeline.analysis.code_motion import INITIAL, has_effects, users
from pipeline.ir.linalg_op import reads_input_again, structured
from pipeline.ir.reshapes import ALL_RESHAPES
from pipeline.mlir import captured_values, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class SinkIntoBranches(PatternPass):
    """Move an op in front of an scf.if into the branch that alone uses its result.

    On the other way it does not run then, and where it runs it can fuse. An op that both branches use, and nothing
    else, goes into both if it fuses there; one of them runs, so nothing is computed twice. Otherwise it stays, and is
    compiled once. Ops sink within their own block alone, never into a loop. Outer branches come first, so that ops can
    sink into several.
    """

    name: ClassVar[str] = "sink-into-branches"
    anchor: ClassVar[str] = "func.func"

    @pattern("scf.if")
    def sink(self, branch: ir.Operation) -> bool:
        """y = f(x); if c { g(y) }   ->   if c { g(f(x)) }"""
        read, sunk = set(captured_values(branch)), False
        ops = [op.operation for op in branch.block.operations]
        for op in reversed(ops[: ops.index(branch)]):
            if not any(result in read for result in op.results) or not self._sink(op, branch):
                continue
            read.update(captured_values(op))
            sunk = True
        return sunk

    def _sink(self, op: ir.Operation, branch: ir.Operation) -> bool:
        """Moves one op into the branches that need it, if that is right; returns whether it has."""
        if op.name == "arith.constant":
            return False
        sides = [_side(user, branch) for user in users(op)]
        taken = {side for side in sides if side is not None}
        if not taken:
            return False
        if has_effects(op):
            self.missed(op, "is used in a branch only, but has side effects")
            return False
        if None in sides:
            if op.name not in INITIAL and op.name.startswith("linalg."):
                self.missed(op, "is used in a branch, but also outside of it")
            return False
        if len(taken) == 1:
            self.passed(op, "only one branch needs it")
            op.move_before(_first(branch, taken.pop()))
            return True
        if op.name in INITIAL or op.name in ALL_RESHAPES or any(_fuses(op, branch, side) for side in taken):
            self.passed(op, "both branches need it, and it fuses there")
            _duplicate(op, branch)
            return True
        if op.name.startswith("linalg."):
            self.missed(op, "both branches need it, and it fuses with nothing there: it stays in front of them")
        return False


def _side(op: ir.Operation, branch: ir.Operation) -> int | None:
    """In which region of `branch` an op is; None if in none."""
    block = op.block
    while True:
        for number, region in enumerate(branch.regions):
            if len(region.blocks) and region.blocks[0] == block:
                return number
        owner = block.owner
        if owner is None or owner.operation.name in ("func.func", "builtin.module"):
            return None
        block = owner.operation.block


def _first(branch: ir.Operation, side: int) -> ir.Operation:
    return branch.regions[side].blocks[0].operations[0].operation


def _fuses(op: ir.Operation, branch: ir.Operation, side: int) -> bool:
    """Whether fuse-elementwise would compute `op` in its one user in that branch."""
    producer = structured(op)
    inside = [user for user in users(op) if _side(user, branch) == side]
    if producer is None or not producer.is_elementwise or len(op.results) != 1 or len(inside) != 1:
        return False
    consumer = structured(inside[0])
    if consumer is None or consumer.op.name != "linalg.generic" or consumer.op.block != branch.regions[side].blocks[0]:
        return False
    read = [number for number in range(consumer.inputs) if consumer.op.operands[number] == op.results[0]]
    if not read or reads_input_again(consumer):
        return False
    return all(consumer.reads_once(number) for number in read) or body_cost(producer) <= CHEAP_BODY


def _duplicate(op: ir.Operation, branch: ir.Operation) -> None:
    """Gives each branch an `op` of its own."""
    first = _first(branch, 1)
    with op.location, ir.InsertionPoint(first):
        copy = op.clone()
    for mine, its in zip(op.results, copy.results, strict=True):
        for use in list(mine.uses):
            if _side(use.owner.operation, branch) == 1:
                use.owner.operands[use.operand_number] = its
    op.move_before(_first(branch, 0))
