"""How numbers are passed to kernels: what takes the place of each type."""

from __future__ import annotations

from pipeline.mlir import arith, ir


def passed_type(kind: ir.Type) -> ir.Type:
    """The type as which a number of type `kind` is handed to a kernel: index, i64, i32, f64 or f32."""
    if isinstance(kind, ir.IntegerType):
        return ir.IntegerType.get_signless(64 if kind.width > 32 else 32)
    return ir.F32Type.get() if isinstance(kind, (ir.F16Type, ir.BF16Type)) else kind


def unpack(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A number that was passed, as the type that the kernel takes it for."""
    if value.type == kind:
        return value
    if isinstance(kind, ir.IntegerType):
        return arith.TruncIOp(kind, value).result
    return arith.TruncFOp(kind, value).result
