"""hoist-loop-invariants: what is the same in every round of a loop is computed in front of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.body_cost import body_cost
from pipeline.analysis.code_motion import INITIAL, is_only_destination, why_not_speculated
from pipeline.ir.element_types import byte_size
from pipeline.ir.linalg_op import structured
from pipeline.ir.reshapes import ALL_RESHAPES
from pipeline.ir.rewriting import before, is_unused
from pipeline.mlir import captured_values, defining_op, ir, is_inside, remap_operands, walk_innermost_first
from pipeline.passmanager.base import Pass

_LEFT_ALONE = ("arith.constant", "scf.yield", "scf.condition", *INITIAL)


@dataclass(frozen=True)
class HoistLoopInvariants(Pass):
    """Move ops that depend on nothing that changes in a loop out of scf.for and scf.while.

    A loop may run no round, so what moves must neither have effects nor trap. The fills and empty tensors that others
    compute into stay, for a shared one would have to be copied in each round; so does a broadcast that is larger than
    what it reads. Nothing ever moves the other way, into a loop.
    """

    name: ClassVar[str] = "hoist-loop-invariants"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Hoists from every loop of one function, inner loops first, so that ops can leave several."""
        for loop in walk_innermost_first(op, "scf.for", "scf.while"):
            for region in loop.regions:
                for inner in [inner.operation for inner in region.blocks[0].operations]:
                    self._hoist(inner, loop)

    def _hoist(self, op: ir.Operation, loop: ir.Operation) -> None:
        """for { y = f(x) } -> y = f(x); for { }."""
        if op.name in _LEFT_ALONE or not _is_invariant(op, loop):
            return
        reason = _why_not(op, loop)
        if reason is not None:
            self.missed(op, f"is the same in every round, but stays in the loop: {reason}")
            return
        self.passed(op, "is computed once, in front of the loop")
        initial = _initial_values(op, loop)
        op.move_before(loop)
        with before(op):
            copies: dict[ir.Value, ir.Value] = {}
            for init in initial:
                copy = init.clone()
                remap_operands(copy, copies)
                copies[init.results[0]] = copy.results[0]
            remap_operands(op, copies)
        for init in reversed(initial):
            if is_unused(init.results[0]):
                init.erase()


def _is_invariant(op: ir.Operation, loop: ir.Operation) -> bool:
    return all(not is_inside(value, loop) or _is_initial(value) for value in captured_values(op))


def _is_initial(value: ir.Value) -> bool:
    producer = defining_op(value)
    return producer is not None and producer.name in INITIAL


def _initial_values(op: ir.Operation, loop: ir.Operation) -> list[ir.Operation]:
    """The fills and empty tensors inside the loop that `op` needs, producers first."""
    found: dict[ir.Operation, None] = {}

    def need(value: ir.Value) -> None:
        producer = defining_op(value)
        if producer is None or not is_inside(value, loop):
            return
        for operand in producer.operands:
            need(operand)
        found.setdefault(producer)

    for value in captured_values(op):
        need(value)
    return list(found)


def _why_not(op: ir.Operation, loop: ir.Operation) -> str | None:
    if any(
        is_inside(operand, loop) for initial in _initial_values(op, loop) for operand in _sources(initial)
    ):  # a size or a number that changes
        return "it starts from a tensor that is not the same in every round"
    if op.name in ALL_RESHAPES and _is_initial(op.operands[0]):
        return "others compute into it"
    if op.results and all(map(is_only_destination, op.results)):
        return "others compute into it"
    reason = why_not_speculated(op)
    if reason is not None:
        return reason
    view = structured(op)
    if view is not None and body_cost(view) == 0 and _is_enlarged(op):
        return "it only moves elements, and reading the result would cost more"
    return None


def _sources(initial: ir.Operation) -> list[ir.Value]:
    """What a fill or an empty tensor is made from: numbers and sizes."""
    return [value for value in initial.operands if not isinstance(value.type, ir.RankedTensorType)]


def _is_enlarged(op: ir.Operation) -> bool:
    inputs = list(op.operands)[: len(op.operands) - len(op.results)]
    read, written = [byte_size(value.type) for value in inputs], [byte_size(value.type) for value in op.results]
    if None in read or None in written:
        return True
    return sum(filter(None, written)) > sum(filter(None, read))
