"""From torch's tensors to builtin ones and back, for ops of our own between torch-mlir's passes.

Torch-mlir folds pairs of these conversions away as it lowers.
"""

from __future__ import annotations

import re

from pipeline.mlir import arith, ir, run_pipeline

_TENSOR = re.compile(r"!torch\.vtensor<\[([\d,?]*)\],[su]?(\w+)>")


def load_conversions(context: ir.Context) -> None:
    """Loads torch-mlir's dialect of conversions, which only its passes bring in."""
    with context, ir.Location.unknown():
        run_pipeline(ir.Module.create().operation, "builtin.module(torch-func-backend-type-conversion)")


def builtin_type(kind: ir.Type) -> ir.RankedTensorType | None:
    """!torch.vtensor<[2,?],si64> → tensor<2x?xi64>; None for a type of another form, such as a complex one."""
    match = _TENSOR.fullmatch(str(kind))
    if match is None:
        return None
    sizes = "".join(f"{size}x" for size in match[1].split(",") if size)
    return ir.RankedTensorType(ir.Type.parse(f"tensor<{sizes}{match[2]}>", kind.context))


def to_builtin(value: ir.Value) -> ir.Value:
    """The tensor as a builtin one, at the insertion point."""
    return ir.Operation.create("torch_c.to_builtin_tensor", [builtin_type(value.type)], [value]).result


def from_builtin(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The builtin tensor as one of torch's, of the type `kind`, at the insertion point."""
    return ir.Operation.create("torch_c.from_builtin_tensor", [kind], [value]).result


def to_index(number: ir.Value) -> ir.Value:
    """!torch.int → index, at the insertion point."""
    wide = ir.Operation.create("torch_c.to_i64", [ir.IntegerType.get_signless(64)], [number]).result
    return arith.IndexCastOp(ir.IndexType.get(), wide).result
