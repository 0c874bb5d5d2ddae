"""move-slices-into-groups: a kernel reads a slice of a tensor where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.dialects.fusion import GROUP
from pipeline.mlir import defining_op, ir, remap_operands, walk
from pipeline.passes.base import Pass
from pipeline.passes.rewriting import before, is_unused, replace

#: On a group: it is a call of something outside.
_CALLS = "pipeline.calls"


@dataclass(frozen=True)
class MoveSlicesIntoGroups(Pass):
    """Take the slices that a fusion.group reads into the group, which reads the whole tensor then.

    A kernel takes tensors that lie row by row, so a slice would be copied for it; inside of the kernel a slice is a
    matter of addresses. Slices whose innermost elements do not lie side by side are left to the copy.
    """

    name: ClassVar[str] = "move-slices-into-groups"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Moves the slices of every group in one function."""
        for group in walk(op, GROUP):
            slices = [operand for operand in group.operands if _slice(operand) is not None]
            if slices and _CALLS in group.attributes:
                self.missed(group, "takes slices as copies: what it calls reads tensors that lie row by row")
            elif slices:
                self.passed(group, f"reads {len(slices)} slices where they lie")
                _absorb(group)


def _slice(value: ir.Value) -> ir.Operation | None:
    """The slice that a value is, if its innermost elements lie side by side in the tensor it is one of."""
    op = defining_op(value)
    if op is None or op.name != "tensor.extract_slice":
        return None
    strides = list(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))
    return op if strides and strides[-1] == 1 and ir.RankedTensorType(value.type).rank else None


def _absorb(group: ir.Operation) -> None:
    """group(slice(x)) { f } -> group(x) { f(slice) }."""
    old = group.regions[0].blocks[0]
    slices = [_slice(operand) for operand in group.operands]
    inputs = dict.fromkeys(
        value
        for operand, cut in zip(group.operands, slices, strict=True)
        for value in ([operand] if cut is None else cut.operands)
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
    for argument, operand, cut in zip(old.arguments, group.operands, slices, strict=True):
        argument.replace_all_uses_with(known[operand] if cut is None else _copy(cut, known, block))
    for op in [op.operation for op in old.operations]:
        block.append(op)
    replace(group, list(made.results))
    for cut in slices:
        if cut is not None and is_unused(cut.results[0]):
            cut.erase()


def _copy(cut: ir.Operation, known: dict[ir.Value, ir.Value], block: ir.Block) -> ir.Value:
    with cut.location, ir.InsertionPoint(block):
        copy = cut.clone()
    remap_operands(copy, known)
    return copy.results[0]
