"""fuse-siblings: independent kernels that read the same tensor in the same way become one with several results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.op_naming import group_kind, group_label
from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.dialects.fusion import GROUP, create_group, target_of
from pipeline.ir.attributes import CUSTOM, STOP_FUSION
from pipeline.ir.indexing_maps import is_permutation
from pipeline.ir.linalg_op import LinalgOp, reads_input_again, structured
from pipeline.ir.rewriting import build_generic, copy_body
from pipeline.mlir import clone, defining_op, ir, walk
from pipeline.passmanager.base import Pass

#: What stands beside the one op of a group: what it starts from, and views of what it reads.
_BESIDE = ("tensor.empty", "linalg.fill", "arith.constant", "tensor.extract_slice", "tensor.expand_shape")


@dataclass(frozen=True)
class FuseSiblings(Pass):
    """Join two fusion groups of one linalg.generic each, if both read every element of one tensor in the same order.

    x -> sum(x), x -> sum(x * x)  =>  x -> sum(x), sum(x * x)

    The tensor is then read once. Both are elementwise, or both are reductions that fold; their results run over the
    same loops, the second one reads nothing that the first one computes, and has all that it reads before it.
    """

    name: ClassVar[str] = "fuse-siblings"
    anchor: ClassVar[str] = "func.func"

    most: int = field(default=4, metadata={"help": "how many results a joined group may have"})

    def run(self, op: ir.Operation) -> None:
        """Joins groups of one function, first ones first."""
        waiting = [single for group in walk(op, GROUP) if (single := _single(group)) is not None]
        while waiting:
            first = waiting.pop(0)
            second = next((other for other in waiting if self._fits(first, other)), None)
            if second is None:
                continue
            waiting.remove(second)
            self.passed(first.group, "computes what another kernel makes of the same tensor, too")
            joined = _single(_join(first, second))
            assert joined is not None
            waiting.insert(0, joined)

    def _fits(self, first: _Single, second: _Single) -> bool:
        if first.group.block != second.group.block or target_of(first.group) != target_of(second.group):
            return False
        if first.form != second.form or len(first.group.results) + len(second.group.results) > self.most:
            return False
        if not first.reads() & second.reads():
            return False
        return all(_is_before(operand, first.group) for operand in second.group.operands)


@dataclass(frozen=True)
class _Single:
    """A group with one generic."""

    group: ir.Operation
    view: LinalgOp

    @property
    def form(self) -> tuple[object, ...]:
        """What two that are joined have in common: the loops, how results run over them, whether it folds."""
        return self.view.reductions, self.view.maps[self.view.inputs], any(self.view.reductions)

    def reads(self) -> set[tuple[ir.Value, ir.AffineMap]]:
        """The operands of the group that every iteration reads another element of, and how."""
        arguments = list(self.group.regions[0].blocks[0].arguments)
        found = set()
        for operand in range(self.view.inputs):
            value = self.view.op.operands[operand]
            if value in arguments and is_permutation(self.view.maps[operand]):
                found.add((self.group.operands[ir.BlockArgument(value).arg_number], self.view.maps[operand]))
        return found


def _single(group: ir.Operation) -> _Single | None:
    """A group of one generic whose body has a vector form; None for another one."""
    if CUSTOM in group.attributes:  # a user's own group stays what it is
        return None
    *ops, terminator = [op.operation for op in group.regions[0].blocks[0].operations]
    computing = [op for op in ops if op.name not in _BESIDE]
    if len(computing) != 1 or computing[0].name != "linalg.generic" or STOP_FUSION in computing[0].attributes:
        return None
    view = structured(computing[0])
    if view is None or list(terminator.operands) != list(view.op.results) or reads_input_again(view):
        return None
    if any(indexing != view.maps[view.inputs] for indexing in view.maps[view.inputs :]):
        return None
    if not all(op.name.startswith(("arith.", "math.")) for op in view.body_ops):
        return None
    plain = fold_ops(view.op) is not None if any(view.reductions) else view.is_elementwise
    return _Single(group, view) if plain else None


def _is_before(value: ir.Value, op: ir.Operation) -> bool:
    """Whether `value` is there when `op` runs, in whose block or around it `value` is defined."""
    producer = defining_op(value)
    return producer is None or producer.block != op.block or producer.is_before_in_block(op)


def _join(first: _Single, second: _Single) -> ir.Operation:
    """Builds one group in the place of the first; erases both."""
    with first.group.location, ir.InsertionPoint(first.group):
        copies, views = [], []
        for single in (first, second):
            inside, view = _copy(single)
            copies += inside
            views.append(view)
        generic = _joined(views)
        ops = [op for op in copies if op not in [view.op for view in views]]
        results = list(generic.results)
        group = create_group([*ops, generic], results, group_kind([generic]), group_label([generic]))
    old = [result for single in (first, second) for result in single.group.results]
    for before, after in zip(old, group.results, strict=True):
        before.replace_all_uses_with(after)
    for gone in (generic, *reversed(copies), first.group, second.group):
        gone.erase()
    return group


def _copy(single: _Single) -> tuple[list[ir.Operation], LinalgOp]:
    """Copies of the ops of a group at the insertion point, and that of its generic."""
    block = single.group.regions[0].blocks[0]
    known: dict[ir.Value, ir.Value] = dict(zip(block.arguments, single.group.operands, strict=True))
    copies = []
    view = None
    for op in [op.operation for op in block.operations][:-1]:
        copy = clone(op, known)
        copies.append(copy)
        view = structured(copy) if copy.name == "linalg.generic" else view
    assert view is not None
    return copies, view


def _joined(views: Sequence[LinalgOp]) -> ir.Operation:
    """One generic with the results of all; inputs that are read in the same way are one."""
    inputs: dict[tuple[ir.Value, ir.AffineMap], int] = {}
    for view in views:
        for operand in range(view.inputs):
            inputs.setdefault((view.op.operands[operand], view.maps[operand]), len(inputs))
    outputs = [operand for view in views for operand in list(view.op.operands)[view.inputs :]]
    output_maps = [indexing for view in views for indexing in view.maps[view.inputs :]]

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        values: list[ir.Value] = []
        for view in views:
            places = [inputs[view.op.operands[n], view.maps[n]] for n in range(view.inputs)]
            start = len(inputs) + len(values)
            own = elements[start : start + len(view.op.results)]
            values += copy_body(view, [*(elements[place] for place in places), *own])
        return values

    return build_generic(
        [value for value, _ in inputs],
        outputs,
        [*(indexing for _, indexing in inputs), *output_maps],
        list(views[0].op.attributes["iterator_types"]),
        body,
    )
