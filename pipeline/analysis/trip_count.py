"""How often loops run; which while loops count: a number goes up by a step in each round until it reaches a limit."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.iter_args import Carry, carries_of
from pipeline.mlir import arith, constant_integer, defining_op, ir, is_inside, terminator

_LESS, _GREATER = arith.CmpIPredicate.slt, arith.CmpIPredicate.sgt


@dataclass(frozen=True)
class Count:
    """A loop `while (flag = i < limit, i = ..) { condition(flag) } do { ..; yield i + step < limit, i + step }`.

    Attributes:
        counter: the carry that counts.
        flag: the number of the carry that says whether there is another round.
        step: how much it goes up.
        limit: the first number that it does not reach in a round; from outside of the loop.
        others: what the loop carries besides.
    """

    counter: Carry
    flag: int
    step: int
    limit: ir.Value
    others: list[Carry]


def count_of(loop: ir.Operation) -> Count | str:
    """How an scf.while counts, or why it does not."""
    before, after = (region.blocks[0] for region in loop.regions)
    if len(before.operations) != 1:
        return "its condition computes something"
    carries = carries_of(loop)
    flag = before.operations[0].operation.operands[0]
    if carries is None or not isinstance(flag.owner, ir.Block):
        return "it hands on what it does not carry"
    number = ir.BlockArgument(flag).arg_number
    if any(carry.number == number for carry in carries) or len(carries) != len(loop.results):
        return "it hands on its flag"
    following = terminator(after).operands[number]
    found = _compared(following)
    if found is None:
        return "it goes on for another reason than a counter"
    value, limit = found
    counter = next((carry for carry in carries if _step(value, carry) is not None), None)
    step = None if counter is None else _step(value, counter)
    if counter is None or step is None or step != _step(counter.following, counter):
        return "it goes on for another reason than a counter"
    if is_inside(limit, loop) and constant_integer(limit) is None:
        return "it goes on for another reason than a counter"
    reason = _why_not(loop.operands[number], counter, step, limit)
    if reason is not None:
        return reason
    return Count(counter, number, step, limit, [carry for carry in carries if carry != counter])


def trip_count(loop: ir.Operation) -> int | None:
    """How often an scf.for runs; None if that is not known."""
    lower, upper, step = list(loop.operands)[:3]
    if lower == upper:
        return 0
    bounds = [constant_integer(value) for value in (lower, upper, step)]
    first, last, stride = bounds
    if first is None or last is None or stride is None or stride <= 0:
        return None
    if "unsignedCmp" in loop.attributes and (first < 0 or last < 0):
        return None  # a negative number stands for a large one
    return max(0, -((first - last) // stride))


def _compared(flag: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """(a, b) of a < b."""
    op = defining_op(flag)
    if op is None or op.name != "arith.cmpi":
        return None
    predicate = arith.CmpIPredicate(ir.IntegerAttr(op.attributes["predicate"]).value)
    left, right = op.operands
    return {_LESS: (left, right), _GREATER: (right, left)}.get(predicate)


def _step(value: ir.Value, counter: Carry) -> int | None:
    """How much a value is above a carry; None if that is not a number above 0."""
    op = defining_op(value)
    if op is None or op.name != "arith.addi" or counter.argument not in list(op.operands):
        return None
    steps = [constant_integer(value) for value in op.operands if value != counter.argument]
    return steps[0] if steps and steps[0] is not None and steps[0] > 0 else None


def _why_not(first: ir.Value, counter: Carry, step: int, limit: ir.Value) -> str | None:
    """Why the first round, or the last one, may be another than that of a counting loop; None if not."""
    bits = counter.kind.width if isinstance(counter.kind, ir.IntegerType) else 64
    if bits < 8:
        return "its counter is a flag"
    start, end = constant_integer(counter.initial), constant_integer(limit)
    largest = (1 << (bits - 1)) - 1 - step
    runs = start < end if start is not None and end is not None and end <= largest else None
    if step != 1 and runs is None:
        return "its counter may overflow"
    truth = constant_integer(first)
    if truth is not None:
        return None if bool(truth) is runs else "its first round does not depend on the counter"
    found = _compared(first)
    same = found is not None and _same(found[0], counter.initial) and _same(found[1], limit)
    return None if same else "its first round does not depend on the counter alone"


def _same(one: ir.Value, other: ir.Value) -> bool:
    """Whether two values are one, or the same constant."""
    number = constant_integer(one)
    return one == other or (number is not None and number == constant_integer(other))
