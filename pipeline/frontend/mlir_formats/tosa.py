"""TOSA → linalg on tensors."""

from __future__ import annotations

from pipeline.mlir import ir, run_pipeline

_TO_LINALG = """builtin.module(
    func.func(tosa-infer-shapes, tosa-make-broadcastable, tosa-optional-decompositions),
    canonicalize,
    func.func(
        tosa-to-linalg-named,
        canonicalize,
        tosa-layerwise-constant-fold,
        tosa-make-broadcastable,
        tosa-to-linalg,
        tosa-to-tensor,
        tosa-to-arith{include-apply-rescale=true},
        tosa-to-scf
    ),
    canonicalize,
    cse
)"""


def lower_tosa(module: ir.Module) -> None:
    """Lowers a module in place; ops that no pass knows stay as they are."""
    run_pipeline(module.operation, _TO_LINALG)
