"""share-branch-destinations: both branches of an scf.if write their result to the same memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.element_types import byte_size
from pipeline.ir.kernels import has_control_flow
from pipeline.ir.rewriting import before
from pipeline.mlir import bufferization, ir, memref, seen_through, terminator, walk_innermost_first
from pipeline.passes.bufferization.destinations import place_of, put, shape_of
from pipeline.passes.bufferization.updated_arguments import VIEWS
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class ShareBranchDestinations(Pass):
    """Give the branches of an scf.if one buffer in front of them to compute a result into.

    So that neither branch allocates, and a result of the function is written where the caller wants it. A branch that
    hands on a tensor from outside copies it there, if the result leaves a function or a loop, where it would be copied
    anyway, or is small; or if one branch hands on two tensors where the other hands on one twice. Runs on kernels in
    destination-passing style, before bufferization.
    """

    name: ClassVar[str] = "share-branch-destinations"
    anchor: ClassVar[str] = "func.func"

    copy: int = field(default=65536, metadata={"help": "how many bytes a branch may copy that only hands on a tensor"})

    def run(self, op: ir.Operation) -> None:
        """Does so for the results of known size of every scf.if of one function, inner ones first."""
        if not has_control_flow(op):
            return
        for branch in walk_innermost_first(op, "scf.if"):
            for result in branch.results:
                if isinstance(result.type, ir.RankedTensorType) and result.type.has_static_shape:
                    self._share(branch, result)

    def _share(self, branch: ir.Operation, result: ir.OpResult) -> None:
        """if c { k(.., empty) } else { l(.., empty) } -> m = alloc; if c { k(.., m) } else { l(.., m) }."""
        kind = ir.RankedTensorType(result.type)
        ends = [terminator(region.blocks[0]) for region in branch.regions]
        places = [_usable(end, result.result_number, kind, branch) for end in ends]
        missing = [place is None for place in places]
        is_torn = _is_torn(ends, result.result_number)
        if all(missing) and not is_torn:
            return
        if any(missing) and not is_torn and not _is_copied_anyway(result) and (byte_size(kind) or 0) > self.copy:
            self.missed(branch, f"one branch hands on a tensor, and copying it moves {byte_size(kind)} bytes")
            return
        copies = ["", ", one a copy", ", both copies"][sum(missing)]
        self.passed(branch, f"both branches write to the same memory{copies}")
        with before(branch):
            memory = memref.AllocOp(ir.MemRefType.get(kind.shape, kind.element_type), [], []).result
            target = bufferization.ToTensorOp(kind, memory, restrict=True, writable=True).result
        for end, place in zip(ends, places, strict=True):
            if place is not None:
                put(place, memory)
                continue
            with before(end):
                value = end.operands[result.result_number]
                copied = bufferization.MaterializeInDestinationOp(kind, value, target).result
            end.operands[result.result_number] = copied


def _usable(end: ir.Operation, number: int, kind: ir.RankedTensorType, branch: ir.Operation) -> ir.Operation | None:
    """The place that a branch computes a result into, if it has the result's shape and lies in the branch.

    None if the branch hands it or a view of it on as another result, which would lie in the shared memory, too.
    """
    mine = end.operands[number]
    place = place_of(mine)
    if place is None or shape_of(place) != list(kind.shape):
        return None
    others = [value for other, value in enumerate(end.operands) if other != number]
    if any(seen_through(value, VIEWS) == seen_through(mine, VIEWS) for value in others):
        return None
    parent = place.parent
    while parent is not None and parent.operation != branch:
        parent = parent.operation.parent
    return place if parent is not None else None


def _is_torn(ends: list[ir.Operation], number: int) -> bool:
    """Whether one branch hands on one tensor as this result and one in front of it, and the other branch two.

    These would have to lie in the same memory, which bufferization finds out when both have been written to.
    """
    same = [
        {other for other in range(number) if seen_through(end.operands[other], VIEWS) == seen_through(mine, VIEWS)}
        for end in ends
        for mine in [end.operands[number]]
    ]
    return same[0] != same[1]


def _is_copied_anyway(result: ir.OpResult) -> bool:
    """Whether the function returns the result, or a loop carries it."""
    return any(use.owner.operation.name in ("func.return", "scf.yield") for use in result.uses)
