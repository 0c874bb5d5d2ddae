"""Small questions about values: is it zero, is it a fill, which buffer is it a view of."""

from __future__ import annotations

from pipeline.ir.reshapes import RESHAPES
from pipeline.mlir import defining_op, ir, seen_through

#: Ops that give a view of a buffer.
BUFFER_VIEWS = (
    "memref.subview",
    "memref.cast",
    "memref.reinterpret_cast",
    "memref.expand_shape",
    "memref.collapse_shape",
)


def is_zero(value: ir.Value) -> bool:
    """Whether a tensor is a fill with zero, seen through reshapes of it."""
    producer = defining_op(value)
    if producer is None:
        return False
    if producer.name in ("linalg.fill", *RESHAPES):
        return is_zero(producer.operands[0])
    if producer.name != "arith.constant":
        return False
    attribute = producer.attributes["value"]
    if isinstance(attribute, ir.DenseFPElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return isinstance(attribute, ir.FloatAttr) and attribute.value == 0.0


def is_fill(op: ir.Operation) -> bool:
    """Whether an op writes its first operand, a number, to all of its second one."""
    if op.name == "linalg.fill":
        return True
    if op.name != "linalg.generic" or len(op.operands) != 2 or isinstance(op.operands[0].type, ir.ShapedType):
        return False
    block = op.regions[0].blocks[0]
    return len(block.operations) == 1 and block.operations[0].operation.operands[0] == block.arguments[0]


def base(buffer: ir.Value) -> ir.Value:
    """The buffer that a view is a part of."""
    return seen_through(buffer, BUFFER_VIEWS)
