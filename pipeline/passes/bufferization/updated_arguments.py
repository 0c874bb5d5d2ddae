"""What a function writes to its arguments: which there are, and what shares memory with them.

An argument marked `pipeline.updated = n` is written to: its new value is result n of the function.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.ir.attributes import ARGUMENT_NAME, UPDATED
from pipeline.ir.destination_passing import tied_operand
from pipeline.ir.reshapes import TENSOR_VIEWS
from pipeline.mlir import ir

#: Ops whose result lies in the memory of their first operand.
VIEWS = (*TENSOR_VIEWS, "tensor.reshape")


@dataclass(frozen=True)
class Update:
    """An argument of a function that is written to.

    Attributes:
        argument: the argument, with its old value.
        number: the number of the result that is its new value.
        name: what it is called in remarks.
    """

    argument: ir.BlockArgument
    number: int
    name: str


def updates_of(function: ir.Operation, mark: str = UPDATED) -> list[Update]:
    """The arguments of a function that have a mark, in order."""
    if "arg_attrs" not in function.attributes:
        return []
    arguments = function.regions[0].blocks[0].arguments
    found = []
    for argument, marks in zip(arguments, function.attributes["arg_attrs"], strict=False):
        if mark in marks:
            name = (
                ir.StringAttr(marks[ARGUMENT_NAME]).value
                if ARGUMENT_NAME in marks
                else f"argument {argument.arg_number}"
            )
            found.append(Update(argument, ir.IntegerAttr(marks[mark]).value, name))
    return found


def sharing(value: ir.Value) -> set[ir.Value]:
    """The tensors that may lie in the memory of `value`, itself among them: its views and what is written into it."""
    found: set[ir.Value] = set()
    left = [value]
    while left:
        tensor = left.pop()
        if tensor not in found:
            found.add(tensor)
            for use in tensor.uses:
                left += _following(tensor, use)
    return found


def views(value: ir.Value) -> set[ir.Value]:
    """`value` and what looks at it in another way."""
    found = {value}
    for use in value.uses:
        op = use.owner.operation
        if op.name in VIEWS and use.operand_number == 0:
            found |= views(op.results[0])
    return found


def _following(value: ir.Value, use: ir.OpOperand) -> list[ir.Value]:
    """What may lie in the memory of `value` because of one use of it."""
    op = use.owner.operation
    if op.name == "func.call":
        tied = {  # None where nobody can tell
            result: tied_operand(op, result) for result in op.results if isinstance(result.type, ir.RankedTensorType)
        }
        return [result for result, operand in tied.items() if operand is None or operand == value]
    if op.name in ("tensor.extract", "tensor.dim", "func.return"):
        return []
    if op.name in ("tensor.insert_slice", "tensor.insert", "bufferization.materialize_in_destination"):
        return list(op.results) if use.operand_number == 1 else []
    around = op.parent.operation if op.name in ("scf.yield", "scf.condition") else op
    inside = [argument for region in around.regions for block in region.blocks for argument in block.arguments]
    return [tensor for tensor in (*around.results, *inside) if isinstance(tensor.type, ir.RankedTensorType)]
