"""Constants, built at the insertion point."""

from __future__ import annotations

from pipeline.mlir import arith, ir


def as_index(value: int | ir.Value) -> ir.Value:
    """A number as a constant of type index; an index as it is."""
    return arith.ConstantOp(ir.IndexType.get(), value).result if isinstance(value, int) else value


def zero(kind: ir.Type) -> ir.Value:
    """0 of a type of numbers."""
    return arith.ConstantOp(kind, zero_attribute(kind)).result


def zero_attribute(kind: ir.Type) -> ir.Attribute:
    """0 of a type of numbers, as an attribute."""
    return ir.FloatAttr.get(kind, 0.0) if isinstance(kind, ir.FloatType) else ir.IntegerAttr.get(kind, 0)
