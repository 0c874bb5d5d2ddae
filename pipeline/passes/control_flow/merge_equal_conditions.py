"""merge-equal-conditions: two branches on one condition become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.code_motion import has_effects, needed_between, why_not_speculated
from pipeline.ir.rewriting import replace
from pipeline.mlir import captured_values, constant_integer, defining_op, ir, remap_operands, scf, walk_innermost_first
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class MergeEqualConditions(Pass):
    """Merge two scf.if in one block on the same condition, or one on its negation, into one.

    What stands between them moves in front of the first if the second needs it, and behind the second otherwise; it
    must not depend on the first in a way that the second depends on it, nor pass effects that the order matters to.
    What the second uses of the first's results it then finds in its own branch.
    """

    name: ClassVar[str] = "merge-equal-conditions"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Merges what it can in one function, inner ones first."""
        blocks = {branch.block: None for branch in walk_innermost_first(op, "scf.if")}
        for block in blocks:
            first: dict[ir.Value, ir.Operation] = {}
            for branch in [op.operation for op in block.operations if op.operation.name == "scf.if"]:
                condition, _ = _condition(branch)
                earlier = first.get(condition)
                first[condition] = branch if earlier is None else self._merge(earlier, branch)

    def _merge(self, first: ir.Operation, second: ir.Operation) -> ir.Operation:
        """if c { a } ...; if c { b } -> if c { a; b } ...; returns the op that a third one may be merged with."""
        values = [value for value in captured_values(second) if value not in first.results]
        needed = needed_between(values, first, second)
        reason = _why_not(first, second, needed)
        if reason is not None or needed is None:
            self.missed(second, f"has the condition of an earlier branch, but is not merged with it: {reason}")
            return second
        self.passed(second, "is merged with an earlier branch on the same condition")
        for op in needed:
            op.move_before(first)
        return _join(first, second)


def _condition(branch: ir.Operation) -> tuple[ir.Value, bool]:
    """The condition without negations, and whether it is negated: xor with true, or comparison with false."""
    value, negated = branch.operands[0], False
    while True:
        op = defining_op(value)
        if op is None or op.name not in ("arith.xori", "arith.cmpi"):
            return value, negated
        left, right = op.operands
        number = constant_integer(right)
        if str(left.type) != "i1" or number is None:
            return value, negated
        if op.name == "arith.cmpi":
            predicate = ir.IntegerAttr(op.attributes["predicate"]).value
            if predicate not in (0, 1):
                return value, negated
            number = int((predicate == 0) != bool(number))  # left == false, left != true
        value, negated = left, negated != bool(number)


def _why_not(first: ir.Operation, second: ir.Operation, needed: list[ir.Operation] | None) -> str | None:
    if needed is None:
        return "it needs what is computed from a result of that"
    ops = [op.operation for op in first.block.operations]
    passed = [op for op in ops[ops.index(first) + 1 : ops.index(second)] if op not in needed]
    if any(map(has_effects, needed)) or (has_effects(second) and any(map(_is_fixed, passed))):
        return "an effect stands between them"
    if any(map(why_not_speculated, needed)) and _is_fixed(first):
        return "what it needs may trap, and cannot pass an effect"
    if why_not_speculated(second) and any(map(has_effects, passed)):
        return "it may trap, and cannot pass an effect"
    return None


def _is_fixed(op: ir.Operation) -> bool:
    """Whether an effect may not change its place with `op`."""
    return has_effects(op) or why_not_speculated(op) is not None


def _join(first: ir.Operation, second: ir.Operation) -> ir.Operation:
    """One scf.if at the place of the first with the results of both."""
    condition, negated = _condition(first)
    swapped = negated != _condition(second)[1]
    has_else = any(len(op.regions[1].blocks) for op in (first, second)) or swapped
    types = [result.type for op in (first, second) for result in op.results]
    with second.location, ir.InsertionPoint(first):
        merged = scf.IfOp(first.operands[0], types, has_else=has_else).operation
    for side, region in enumerate(merged.regions):
        if len(region.blocks):
            other = second.regions[1 - side if swapped else side]
            _concatenate(region.blocks[0], first.regions[side], other, first)
    count = len(first.results)
    replace(second, list(merged.results)[count:])
    replace(first, list(merged.results)[:count])
    return merged


def _concatenate(block: ir.Block, one: ir.Region, other: ir.Region, first: ir.Operation) -> None:
    """Moves the ops of `one`, a region of `first`, then those of `other` to a new block, which yields what both do."""
    *ops, terminator = _ops(one) or [None]
    mine = list(terminator.operands) if terminator is not None else []
    *others, last = _ops(other) or [None]
    known = dict(zip(first.results, mine, strict=False))
    for op in [*ops, *others]:
        block.append(op)
    for op in others:
        remap_operands(op, known)
    theirs = [known.get(value, value) for value in last.operands] if last is not None else []
    with first.location, ir.InsertionPoint(block):
        scf.YieldOp([*mine, *theirs])


def _ops(region: ir.Region) -> list[ir.Operation]:
    return [op.operation for op in region.blocks[0].operations] if len(region.blocks) else []
