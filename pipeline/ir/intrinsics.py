"""Calls of LLVM's intrinsics in front of the LLVM dialect, built at the insertion point."""

from __future__ import annotations

from pipeline.mlir import ir


def call_intrinsic(name: str, kind: ir.Type, *operands: ir.Value) -> ir.Value:
    """What an intrinsic, e.g. `llvm.lrint`, gives for the operands, which is of type `kind`."""
    attributes = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    return ir.Operation.create("llvm.call_intrinsic", [kind], list(operands), attributes).result
