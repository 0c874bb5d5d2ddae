"""sink-slices: a slice of a tensor is taken inside of the kernel that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.dialects.fusion import GROUP
from pipeline.mlir import defining_op, ir, walk
from pipeline.passes.base import Pass
from pipeline.passes.become import CALLS

_SLICE = "tensor.extract_slice"

#: Views through which a slice is looked for.
_VIEWS = (_SLICE, "tensor.expand_shape")


@dataclass(frozen=True)
class SinkSlices(Pass):
    """Give a fusion.group that reads a tensor.extract_slice the whole tensor, and have it take the slice itself.

    Kernels take tensors whose elements lie one after the other, so that a slice would be copied before the call; inside
    of the kernel it is a view. Slices of sizes or offsets known at run time only are left alone, and so is what a group
    reads that becomes a call of a function from outside, which gets the slice.
    """

    name: ClassVar[str] = "sink-slices"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Sinks the slices of one function."""
        for group in walk(op, GROUP):
            if CALLS in group.attributes:
                continue
            for number, operand in enumerate(list(group.operands)):
                views = _views(operand)
                if views:
                    self.passed(group, f"takes operand {number}, a slice, itself")
                    _sink(group, number, views)
        for view in reversed(walk(op, *_VIEWS)):
            if not list(view.results[0].uses):
                view.erase()


def _views(value: ir.Value) -> list[ir.Operation]:
    """The views of known sizes behind a value, first one first, of which the first is a slice."""
    views: list[ir.Operation] = []
    while (op := defining_op(value)) is not None and op.name in _VIEWS and len(op.operands) == 1:
        views.insert(0, op)
        value = op.operands[0]
    first = next((number for number, view in enumerate(views) if view.name == _SLICE), len(views))
    return views[first:]


def _sink(group: ir.Operation, number: int, views: list[ir.Operation]) -> None:
    """group(slice(x)) { (%y) ... } -> group(x) { (%x) %y = slice(%x) ... }"""
    argument = group.regions[0].blocks[0].arguments[number]
    source = views[0].operands[0]
    with ir.InsertionPoint.at_block_begin(group.regions[0].blocks[0]):
        copies = [view.clone() for view in views]
    argument.replace_all_uses_with(copies[-1].results[0])
    group.operands[number] = source
    argument.set_type(source.type)
    for before, after in zip([argument, *(copy.results[0] for copy in copies)], copies, strict=False):
        after.operands[0] = before
