"""StableHLO → linalg on tensors."""

from __future__ import annotations

from pipeline.frontend.mlir_formats.stablehlo_control_flow import lower_control_flow
from pipeline.mlir import ir, run_pipeline, walk

#: Calls are inlined, and what upstream calls deprecated becomes what its passes know.
_PREPARE = "builtin.module(inline,symbol-dce,canonicalize,cse,func.func(stablehlo-legalize-deprecated-ops))"

_TO_LINALG = """builtin.module(
    func.func(stablehlo-aggressive-simplification),
    stablehlo-legalize-to-linalg,
    stablehlo-convert-to-signless,
    canonicalize,
    cse
)"""


def lower_stablehlo(module: ir.Module) -> None:
    """Lowers a module in place; ops that no pass knows stay as they are."""
    call_decompositions(module)
    run_pipeline(module.operation, _PREPARE)
    lower_control_flow(module)
    run_pipeline(module.operation, _TO_LINALG)


def call_decompositions(module: ir.Module) -> None:
    """composite "name" %x {decomposition = @f} → func.call @f(%x)."""
    for op in walk(module, "stablehlo.composite"):
        with ir.InsertionPoint(op):
            call = ir.Operation.create(
                "func.call",
                results=[result.type for result in op.results],
                operands=list(op.operands),
                attributes={"callee": op.attributes["decomposition"]},
                loc=op.location,
            )
        for old, new in zip(op.results, call.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
