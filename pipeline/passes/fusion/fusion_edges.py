"""The edges between ops that compute: from each to those that read its results, past reshapes, barriers and borders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.analysis.concat import INSERT
from pipeline.dialects.fusion import BARRIER
from pipeline.fusion_rules import reasons
from pipeline.fusion_rules.reasons import Refusal
from pipeline.ir.attributes import KERNEL
from pipeline.ir.reshapes import TENSOR_VIEWS
from pipeline.mlir import ir

#: What stands between two ops without computing anything.
_BETWEEN = (*TENSOR_VIEWS, INSERT, BARRIER)


@dataclass(frozen=True)
class Reader:
    """An op that reads what another one computes, and the name of what stands between the two, if anything does."""

    op: ir.Operation
    between: str | None = None

    def why_apart(self, producer: ir.Operation) -> Refusal | None:
        """Why the two cannot be in one group, whatever they compute; None if nothing of the kind is the case."""
        if self.between == BARRIER:
            return Refusal(reasons.BARRIER, "a barrier stands between the two")
        if self.op.block != producer.block:
            return Refusal(reasons.ANOTHER_BLOCK, "it is in another block")
        if self.between is not None:
            return Refusal(reasons.SHAPE_MISMATCH, f"a {self.between} stands between the two")
        return None


def readers(op: ir.Operation) -> Iterator[Reader]:
    """The linalg ops and marked loops that read the results of `op`, each once."""
    seen: set[ir.Operation] = set()
    waiting: list[tuple[ir.Operation, str | None]] = [(op, None)]
    while waiting:
        producer, between = waiting.pop(0)
        for result in producer.results:
            for use in result.uses:
                owner = use.owner.operation
                if owner in seen:
                    continue
                seen.add(owner)
                if owner.name in _BETWEEN:
                    waiting.append((owner, BARRIER if BARRIER in (between, owner.name) else owner.name))
                elif owner.name.startswith("linalg.") and owner.name != "linalg.fill" or KERNEL in owner.attributes:
                    yield Reader(owner, between)
