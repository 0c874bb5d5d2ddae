"""remove-unused-iter-args: loops do not carry what nobody reads in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.code_motion import has_effects, op_in
from pipeline.analysis.iter_args import Carry, carries_of
from pipeline.ir.rewriting import is_unused
from pipeline.mlir import captured_values, defining_op, ir, terminator
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class RemoveUnusedIterArgs(PatternPass):
    """Let loops not compute what they carry for nothing but itself.

    Such a carry keeps its first value instead, and what computed it is unused; `canonicalize` takes both away, as it
    takes away unused results of branches and loops without effects. Read is what a result, an effect or a condition
    depends on, through other carries, too. Outer loops come first: what they do not need, inner ones need not compute.
    """

    name: ClassVar[str] = "remove-unused-iter-args"
    anchor: ClassVar[str] = "func.func"

    @pattern("scf.for", "scf.while")
    def keep_first(self, loop: ir.Operation) -> bool:
        """for carry = x { yield f(carry) }   ->   for carry = x { yield carry }"""
        carries = carries_of(loop) or []
        read = _read(loop, carries)
        unread = [carry for carry in carries if not carry.is_kept and carry not in read]
        for carry in unread:
            self.passed(loop, f"does not compute what it carries as number {carry.number}: nobody reads it")
            _body_end(loop).operands[carry.number] = carry.argument
        return bool(unread)


def _body_end(loop: ir.Operation) -> ir.Operation:
    block = loop.regions[len(loop.regions) - 1].blocks[0]
    return terminator(block)


def _read(loop: ir.Operation, carries: list[Carry]) -> list[Carry]:
    """The carries that are not for nothing."""
    found: list[Carry] = []
    pending = _roots(loop, carries)
    seen: set[ir.Value] = set()
    blocks = [region.blocks[0] for region in loop.regions]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for carry in carries:
            if value in _arguments(loop, carry) and carry not in found:
                found.append(carry)
                pending.append(carry.following)
        producer = defining_op(value)
        here = None if producer is None else next((op for op in (op_in(producer, b) for b in blocks) if op), None)
        if here is not None:
            pending += captured_values(here)
    return found


def _arguments(loop: ir.Operation, carry: Carry) -> list[ir.Value]:
    """The carry as the body, and the condition, know it."""
    if loop.name == "scf.for":
        return [carry.argument]
    return [carry.argument, loop.regions[0].blocks[0].arguments[carry.number]]


def _roots(loop: ir.Operation, carries: list[Carry]) -> list[ir.Value]:
    """What is read for sure: what becomes a used result, the condition, all that effects depend on."""
    known = {carry.number for carry in carries}
    found = [carry.following for carry in carries if not is_unused(carry.result)]
    found += [carry.argument for carry in carries if not is_unused(carry.result)]
    for region in loop.regions:
        for op in region.blocks[0].operations:
            op = op.operation
            if op.name == "scf.condition":
                found.append(op.operands[0])
                found += [value for value in list(op.operands)[1:] if not _is_carried(value, loop, carries)]
            elif op.name == "scf.yield":
                found += [value for number, value in enumerate(op.operands) if number not in known]
            elif has_effects(op):
                found += captured_values(op)
    return found


def _is_carried(value: ir.Value, loop: ir.Operation, carries: list[Carry]) -> bool:
    return any(value in _arguments(loop, carry) for carry in carries)
