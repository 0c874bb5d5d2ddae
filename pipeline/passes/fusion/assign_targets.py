"""assign-targets: marks the ops that go by another target's table of fusion rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.fusion_rules.op_facts import OpFacts
from pipeline.fusion_rules.rules import FusionRules, load_rules
from pipeline.ir.attributes import TARGET
from pipeline.mlir import ir
from pipeline.passes.fusion.group_builder import is_root
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class AssignTargets(PatternPass):
    """Mark each linalg op for which a part of the rules holds with `pipeline.target`, the target of that part.

    Ops of different targets are never fused, and a group carries the target of its ops. An op that is marked already
    keeps its mark.
    """

    name: ClassVar[str] = "assign-targets"
    anchor: ClassVar[str] = "func.func"

    rules: str = field(default="cpu", metadata={"help": "the table of fusion rules: a target's name or a YAML file"})

    def analyze(self, op: ir.Operation) -> FusionRules:
        """The table of fusion rules."""
        return load_rules(self.rules)

    @pattern(is_root, outermost=True)
    def assign(self, op: ir.Operation, rules: FusionRules) -> bool:
        """op   ->   op {pipeline.target = "npu"}, where that part of the rules holds for it"""
        if not rules.parts or TARGET in op.attributes:
            return False
        target = rules.for_op(OpFacts(op)).target
        if target == rules.target:
            return False
        op.attributes[TARGET] = ir.StringAttr.get(target)
        self.passed(op, f"goes by the fusion rules of {target}")
        return True
