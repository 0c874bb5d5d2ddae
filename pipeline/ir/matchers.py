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


def zero_padding(op: ir.Operation) -> list[tuple[int, int]] | None:
    """How many zeros a tensor.pad puts in front of and behind each dim; None for another op, other or unknown ones."""
    if op.name != "tensor.pad" or len(op.operands) != 1:
        return None
    yielded = op.regions[0].blocks[0].operations[0].operation
    if yielded.name != "tensor.yield" or not is_zero(yielded.operands[0]):
        return None
    low, high = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in ("static_low", "static_high"))
    return list(zip(low, high, strict=True)) if min(low + high) >= 0 else None
