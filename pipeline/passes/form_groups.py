"""form-groups: every linalg op becomes a `fusion.group`, together with the ops that make its initial values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.naming import group_kind, group_label
from pipeline.dialects.fusion import GROUP, create_group
from pipeline.mlir import defining_op, ir, walk
from pipeline.passes.base import Pass

#: What other ops start from: it is copied into the groups that need it.
_INITIAL = ("tensor.empty", "linalg.fill")


@dataclass(frozen=True)
class FormGroups(Pass):
    """Wrap each linalg op, with the fills and empty tensors that it starts from, into a fusion.group.

    What runs once per element has been joined before, by fuse-elementwise; a group is what becomes a kernel. Loops that
    are marked `pipeline.kernel` are wrapped like linalg ops. Groups form in every region; values captured from outside
    become operands.
    """

    name: ClassVar[str] = "form-groups"
    anchor: ClassVar[str] = "func.func"

    rules: str = field(default="cpu", metadata={"help": "the table of fusion rules: a target's name or a YAML file"})

    def run(self, op: ir.Operation) -> None:
        """Groups the linalg ops of one function."""
        for root in _roots(op):
            _wrap(root)
        for left in reversed(walk(op, *_INITIAL)):
            if not list(left.results[0].uses):
                left.erase()


def _roots(function: ir.Operation) -> list[ir.Operation]:
    """Every linalg op and marked loop that computes; a fill only if something other than an initial value needs it."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        if op.name == GROUP:
            return ir.WalkResult.SKIP
        if not _computes(op):
            return ir.WalkResult.ADVANCE
        if op.name != "linalg.fill" or not _is_only_initial(op):
            found.append(op)
        return ir.WalkResult.SKIP

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _computes(op: ir.Operation) -> bool:
    return op.name.startswith("linalg.") or "pipeline.kernel" in op.attributes


def _is_only_initial(fill: ir.Operation) -> bool:
    return all(
        _computes(use.owner.operation) and use.operand_number >= _first_init(use.owner.operation)
        for use in fill.results[0].uses
    )


def _first_init(op: ir.Operation) -> int:
    """The number of the first operand that the op updates: a linalg op's first `outs`, a loop's first initial value."""
    return len(op.operands) - len(op.results)


def _wrap(root: ir.Operation) -> None:
    with root.location, ir.InsertionPoint(root):
        _separate_initial_values(root)
        ops = [*_initial_values(root), root]
        group = create_group(ops, list(root.results), group_kind([root]), group_label([root]))
    for before, after in zip(root.results, group.results, strict=True):
        before.replace_all_uses_with(after)
    root.erase()


def _separate_initial_values(root: ir.Operation) -> None:
    """Gives each result of `root` an empty tensor of its own: two in one tensor could not both be updated in place."""
    seen: set[ir.Operation] = set()
    for number in range(_first_init(root), len(root.operands)):
        producer = defining_op(root.operands[number])
        fill = producer if producer is not None and producer.name == "linalg.fill" else None
        empty = defining_op(fill.operands[-1]) if fill is not None else producer
        if empty is None or empty.name != "tensor.empty" or empty not in seen:
            if empty is not None:
                seen.add(empty)
            continue
        own = empty.clone().results[0]
        if fill is not None:
            copy = fill.clone()
            copy.operands[len(copy.operands) - 1] = own
            own = copy.results[0]
        root.operands[number] = own


def _initial_values(root: ir.Operation) -> list[ir.Operation]:
    """The fills and empty tensors behind the `outs` of `root`, producers first."""
    found: list[ir.Operation] = []

    def need(value: ir.Value) -> None:
        producer = defining_op(value)
        if producer is not None and producer.name in _INITIAL and producer not in found:
            for operand in producer.operands:
                need(operand)
            found.append(producer)

    for value in list(root.operands)[_first_init(root) :]:
        need(value)
    return found
