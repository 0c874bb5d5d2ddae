"""align-while-iter-args: what a while loop carries has one number in both of its regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.iter_args import Carry, carries_of
from pipeline.ir.rewriting import before, copy_attributes, replace
from pipeline.mlir import ir, scf, terminator, walk_innermost_first
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class AlignWhileIterArgs(Pass):
    """Give each tensor that an scf.while carries the same number among its initial values as among its results.

    Bufferization compares what the two regions hand on number by number. Where a flag comes first among the initial
    values, and is not among the results, it takes every tensor for another one, and copies all of them in each round.
    """

    name: ClassVar[str] = "align-while-iter-args"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Does so for every scf.while of one function, inner ones first."""
        for loop in walk_innermost_first(op, "scf.while"):
            carries = carries_of(loop) or []
            if any(isinstance(carry.kind, ir.RankedTensorType) and carry.number != carry.place for carry in carries):
                self.passed(loop, "carries what it hands on in the order in which it does")
                _reorder(loop, carries)


def _reorder(loop: ir.Operation, carries: list[Carry]) -> None:
    """while (flag, h) { condition(flag) h } -> while (h, flag) { condition(flag) h }."""
    numbers = _first([carry.number for carry in carries], len(loop.operands))
    places = _first([carry.place for carry in carries], len(loop.results))
    old_before, old_after = (region.blocks[0] for region in loop.regions)
    with before(loop):
        made = scf.WhileOp(
            [loop.results[place].type for place in places], [loop.operands[number] for number in numbers]
        ).operation
    copy_attributes(loop, made)
    for old, region, order in ((old_before, made.regions[0], numbers), (old_after, made.regions[1], places)):
        with loop.location:
            new = ir.Block.create_at_start(region, [old.arguments[number].type for number in order])
        for argument, number in zip(new.arguments, order, strict=True):
            old.arguments[number].replace_all_uses_with(argument)
        for op in [op.operation for op in old.operations][:-1]:
            new.append(op)
    flag, *handed = terminator(old_before).operands
    following = list(terminator(old_after).operands)
    with loop.location, ir.InsertionPoint(made.regions[0].blocks[0]):
        scf.ConditionOp(flag, [handed[place] for place in places])
    with loop.location, ir.InsertionPoint(made.regions[1].blocks[0]):
        scf.YieldOp([following[number] for number in numbers])
    replace(loop, [made.results[places.index(number)] for number in range(len(loop.results))])


def _first(numbers: list[int], count: int) -> list[int]:
    """The numbers below `count`, those given first."""
    return [*numbers, *(number for number in range(count) if number not in numbers)]
