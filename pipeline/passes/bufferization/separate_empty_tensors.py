"""separate-empty-tensors: what takes memory for its result takes it for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before
from pipeline.mlir import clone, ir, symbol_name
from pipeline.passmanager.patterns import PatternPass, pattern

_ENTRIES = ("main", "prepare")


@dataclass(frozen=True)
class SeparateEmptyTensors(PatternPass):
    """Give each op of @main and @prepare that writes to a tensor.empty of known size one of its own for each operand.

    %e = tensor.empty()                   ->  %e = tensor.empty()
    %a = call @f(%x, %e)                      %a = call @f(%x, %e)
    ...                                       ...
    %b = call @f(%y, %e)                      %g = tensor.empty()
                                              %b = call @f(%y, %g)

    One empty tensor, as cse leaves it, would be one buffer, needed from its first writer to its last. Each of two is
    needed as long as somebody reads it, and plan-memory has others lie there in between. Those of unknown size stay:
    each would be an allocation. But those operands of one call are separate in any case: one-shot-bufferize would have
    several results of a call lie in the same memory.
    """

    name: ClassVar[str] = "separate-empty-tensors"

    @pattern("tensor.empty")
    def separate(self, empty: ir.Operation) -> bool:
        """Copies an empty tensor for every user but the first, in front of what has the user in the tensor's block."""
        value = empty.results[0]
        uses = [(use.owner.operation, use.operand_number) for use in value.uses]
        if not ir.RankedTensorType(value.type).has_static_shape or not _is_of_entry(empty):
            uses = _again(uses)
        elif len(uses) < 2:
            return False
        for user, number in uses:
            with before(_in_block(user, empty.block)):
                user.operands[number] = clone(empty, {}).results[0]
        if not list(value.uses):
            empty.erase()
        return bool(uses)


def _again(uses: list[tuple[ir.Operation, int]]) -> list[tuple[ir.Operation, int]]:
    """The uses by ops of which another use has come before."""
    users = [user for user, _ in uses]
    return [use for place, use in enumerate(uses) if use[0] in users[:place]]


def _is_of_entry(op: ir.Operation) -> bool:
    around = op.parent
    return around is not None and around.name == "func.func" and symbol_name(around) in _ENTRIES


def _in_block(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """What has `op` in its regions and lies in `block`; `op` itself if it does."""
    while op.block != block:
        op = op.parent.operation
    return op
