"""sink-slices-into-groups: a kernel reads a slice of a tensor where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.dialects.fusion import GROUP
from pipeline.ir.attributes import CALLS
from pipeline.ir.destination_passing import tied_operand
from pipeline.ir.rewriting import before, is_unused, replace
from pipeline.mlir import defining_op, ir, remap_operands
from pipeline.passmanager.patterns import PatternPass, pattern

_SLICE = "tensor.extract_slice"


@dataclass(frozen=True)
class SinkSlicesIntoGroups(PatternPass):
    """Take the slices that a fusion.group reads into the group, which reads the whole tensor then.

    A kernel takes tensors that lie row by row, so a slice would be copied for it; inside of the kernel a slice is a
    matter of addresses. A tensor.expand_shape of a slice comes along, with the sizes that are known at run time only.
    Slices whose innermost elements do not lie side by side are left to the copy.
    """

    name: ClassVar[str] = "sink-slices-into-groups"
    anchor: ClassVar[str] = "func.func"

    @pattern(GROUP)
    def sink(self, group: ir.Operation) -> bool:
        """group(slice(x)) { f }   ->   group(x) { f(slice) }"""
        count = sum(1 for chain in _views_of(group) if chain)
        if not count:
            return False
        if CALLS in group.attributes:
            self.missed(group, "takes slices as copies: what it calls reads tensors that lie row by row")
            return False
        self.passed(group, f"reads {count} slices where they lie")
        _absorb(group)
        return True


def _views_of(group: ir.Operation) -> list[list[ir.Operation]]:
    """For each operand the views that may come into the group: none of what the group writes to.

    A kernel that writes to a slice of a tensor, and returns that alone, would be given a copy of the whole tensor.
    """
    arguments = group.regions[0].blocks[0].arguments
    return [
        [] if _is_written(argument) else _views(operand)
        for operand, argument in zip(group.operands, arguments, strict=True)
    ]


def _is_written(argument: ir.BlockArgument) -> bool:
    """Whether an op of the group computes into an operand."""
    readers = (use.owner.operation for use in argument.uses)
    tied = (tied_operand(op, result) for op in readers for result in op.results)
    return any(operand is not None and operand == argument for operand in tied)


def _views(value: ir.Value) -> list[ir.Operation]:
    """The slice behind a value and the views that lead from it to the value, slice first; none without a slice."""
    views: list[ir.Operation] = []
    while (op := defining_op(value)) is not None and _is_view(op):
        views.insert(0, op)
        value = op.operands[0]
    while views and views[0].name != _SLICE:
        views.pop(0)
    return views


def _is_view(op: ir.Operation) -> bool:
    """Whether an op is a slice whose innermost elements lie side by side, or splits dims of one."""
    if op.name == "tensor.expand_shape":
        return True
    if op.name != _SLICE:
        return False
    strides = list(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))
    return bool(strides) and strides[-1] == 1 and bool(ir.RankedTensorType(op.results[0].type).rank)


def _absorb(group: ir.Operation) -> None:
    """Puts a group that holds the slices in the place of one that reads them."""
    old = group.regions[0].blocks[0]
    views = _views_of(group)
    moved = list(dict.fromkeys(view for chain in views for view in chain))
    made_inside = {view.results[0] for view in moved}
    inputs = dict.fromkeys(
        value
        for operand, chain in zip(group.operands, views, strict=True)
        for value in ([read for view in chain for read in view.operands if read not in made_inside] or [operand])
    )
    with before(group):
        made = ir.Operation.create(
            GROUP,
            results=[result.type for result in group.results],
            operands=list(inputs),
            attributes={name: group.attributes[name] for name in group.attributes},
            regions=1,
        )
        block = ir.Block.create_at_start(made.regions[0], [value.type for value in inputs])
    known: dict[ir.Value, ir.Value] = dict(zip(inputs, block.arguments, strict=True))
    for view in moved:
        known[view.results[0]] = _copy(view, known, block)
    for argument, operand in zip(old.arguments, group.operands, strict=True):
        argument.replace_all_uses_with(known[operand])
    for op in [op.operation for op in old.operations]:
        block.append(op)
    replace(group, list(made.results))
    for view in reversed(moved):
        if is_unused(view.results[0]):
            view.erase()


def _copy(view: ir.Operation, known: dict[ir.Value, ir.Value], block: ir.Block) -> ir.Value:
    with view.location, ir.InsertionPoint(block):
        copy = view.clone()
    remap_operands(copy, known)
    return copy.results[0]
