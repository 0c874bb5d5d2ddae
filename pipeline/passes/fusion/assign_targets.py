"""assign-targets: marks the ops that go by another target's table of fusion rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.fusion_rules.op_facts import OpFacts
from pipeline.fusion_rules.rules import load_rules
from pipeline.ir.attributes import KERNEL, TARGET
from pipeline.mlir import ir
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class AssignTargets(Pass):
    """Mark each linalg op for which a part of the rules holds with `pipeline.target`, the target of that part.

    Ops of different targets are never fused, and a group carries the target of its ops. An op that is marked already
    keeps its mark.
    """

    name: ClassVar[str] = "assign-targets"
    anchor: ClassVar[str] = "func.func"

    rules: str = field(default="cpu", metadata={"help": "the table of fusion rules: a target's name or a YAML file"})

    def run(self, op: ir.Operation) -> None:
        """Marks the ops of one function."""
        rules = load_rules(self.rules)
        if not rules.parts:
            return

        def visit(inner: ir.Operation) -> ir.WalkResult:
            inner = inner.operation
            if not (inner.name.startswith("linalg.") or KERNEL in inner.attributes):
                return ir.WalkResult.ADVANCE
            target = rules.for_op(OpFacts(inner)).target
            if target != rules.target and TARGET not in inner.attributes:
                inner.attributes[TARGET] = ir.StringAttr.get(target)
                self.passed(inner, f"goes by the fusion rules of {target}")
            return ir.WalkResult.SKIP

        op.walk(visit, ir.WalkOrder.PRE_ORDER)
