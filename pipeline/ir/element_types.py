"""Element types of operands and what they take in memory."""

from __future__ import annotations

import math

from pipeline.mlir import ir


def is_scalar(operand: ir.Value) -> bool:
    """Whether an operand of a linalg op is a number, not a buffer."""
    return not isinstance(operand.type, ir.ShapedType)


def element_type(operand: ir.Value) -> ir.Type:
    """The type of an operand's elements."""
    return operand.type if is_scalar(operand) else ir.ShapedType(operand.type).element_type


def element_bytes(value: ir.Value) -> int:
    """What an element of a tensor or buffer takes in memory, or a number itself; 8 for an index."""
    kind = element_type(value)
    return -(-kind.width // 8) if isinstance(kind, (ir.IntegerType, ir.FloatType)) else 8


def byte_size(kind: ir.Type) -> int | None:
    """The bytes of a tensor or a scalar; None for a size that is not known."""
    if not isinstance(kind, ir.RankedTensorType):
        return 8
    if not kind.has_static_shape:
        return None
    return math.prod(kind.shape) * max(1, _bits(kind.element_type) // 8)


def _bits(element: ir.Type) -> int:
    if isinstance(element, ir.ComplexType):
        return 2 * element.element_type.width
    return 64 if isinstance(element, ir.IndexType) else element.width
