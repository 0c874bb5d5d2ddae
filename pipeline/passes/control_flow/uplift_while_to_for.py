"""uplift-while-to-for: a while loop that counts becomes a for loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.trip_count import Count, count_of
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, copy_attributes, replace
from pipeline.mlir import arith, constant_integer, ir, scf, walk_innermost_first
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class UpliftWhileToFor(Pass):
    """Turn an scf.while whose condition is that a counter is below a limit into an scf.for.

    while (i = 0; i < 64) { f(i); i + 1 } -> for (i = 0 to 64) { f(i) }. The range of the counter is known then, so that
    what it indexes needs no check. The counter goes up by a constant, the limit comes from outside of the loop.
    """

    name: ClassVar[str] = "uplift-while-to-for"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Does so for every scf.while of one function, inner ones first."""
        for loop in walk_innermost_first(op, "scf.while"):
            count = count_of(loop)
            if isinstance(count, str):
                self.missed(loop, f"stays a while loop: {count}")
            else:
                self.passed(loop, "counts, and is a for loop")
                _rewrite(loop, count)


def _rewrite(loop: ir.Operation, count: Count) -> None:
    after = loop.regions[1].blocks[0]
    counter, kind = count.counter, count.counter.kind
    with before(loop):
        limit = _outside(count.limit)
        bounds = [_index(counter.initial), _index(limit), as_index(count.step)]
        made = scf.ForOp(*bounds, [carry.initial for carry in count.others]).operation
    copy_attributes(loop, made)
    block = made.regions[0].blocks[0]
    induction, *carried = block.arguments
    for carry, argument in zip(count.others, carried, strict=True):
        carry.argument.replace_all_uses_with(argument)
    *ops, terminator = [op.operation for op in after.operations]
    with loop.location, ir.InsertionPoint(block):
        counter.argument.replace_all_uses_with(_number(induction, kind))
    for op in ops:
        block.append(op)
    with loop.location, ir.InsertionPoint(block):
        scf.YieldOp([terminator.operands[carry.number] for carry in count.others])
    with before(loop):
        results = dict(zip((carry.place for carry in count.others), made.results, strict=True))
        results[counter.place] = _last(counter.initial, limit, count.step)
    replace(loop, [results[place] for place in range(len(loop.results))])


def _outside(limit: ir.Value) -> ir.Value:
    """The limit in front of the loop, where it is a constant inside."""
    number = constant_integer(limit)
    return limit if number is None else arith.ConstantOp(limit.type, number).result


def _index(value: ir.Value) -> ir.Value:
    number = constant_integer(value)
    if number is not None:
        return as_index(number)
    return value if isinstance(value.type, ir.IndexType) else arith.IndexCastOp(ir.IndexType.get(), value).result


def _number(index: ir.Value, kind: ir.Type) -> ir.Value:
    return index if isinstance(kind, ir.IndexType) else arith.IndexCastOp(kind, index).result


def _last(initial: ir.Value, limit: ir.Value, step: int) -> ir.Value:
    """The counter behind the loop: the first number of its that is not below the limit."""
    first, end = constant_integer(initial), constant_integer(limit)
    if first is None or end is None:
        return arith.MaxSIOp(initial, limit).result  # the step is 1 then
    rounds = max(0, -((first - end) // step))
    return arith.ConstantOp(initial.type, first + rounds * step).result
