"""The one door to MLIR: the only file that imports the MLIR Python bindings.

The bindings are those inside the `torch_mlir` wheel; two builds of MLIR do not mix in a process, so everything else
imports from here. Nothing in this file imports torch.
"""

from __future__ import annotations

from torch_mlir import ir, rewrite
from torch_mlir.dialects import (
    affine,
    arith,
    bufferization,
    ext,
    func,
    linalg,
    llvm,
    memref,
    scf,
    tensor,
)
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.passmanager import PassManager

from pipeline.errors import CompileError

__all__ = [
    "PassManager",
    "affine",
    "arith",
    "bufferization",
    "captured_values",
    "context",
    "defining_op",
    "ext",
    "func",
    "function",
    "ir",
    "is_inside",
    "linalg",
    "llvm",
    "memref",
    "parse",
    "rewrite",
    "run_pipeline",
    "scf",
    "tensor",
    "text",
    "torch_dialect",
    "walk",
]


def context() -> ir.Context:
    """A new MLIR context with upstream's dialects, torch-mlir's and ours."""
    ctx = ir.Context()
    torch_dialect.register_dialect(ctx)
    ctx.allow_unregistered_dialects = True  # for the fusion dialect, see there; `parse` refuses any other
    return ctx


def parse(source: str, ctx: ir.Context, name: str = "<text>") -> ir.Module:
    """Parses MLIR text; raises `CompileError` with the parser's own message and position."""
    try:
        module = ir.Module.parse(source, ctx)
    except ir.MLIRError as error:
        raise CompileError(f"{name}: not valid MLIR: {diagnostics(error)}") from None
    verify(module.operation)
    return module


def verify(op: ir.Operation) -> None:
    """MLIR's verifier and ours for the dialects that MLIR does not know; raises `CompileError`."""
    from pipeline.dialects import fusion

    try:
        op.verify()
    except ir.MLIRError as error:
        raise CompileError(f"not valid IR: {diagnostics(error)}") from None

    def visit(inner: ir.Operation) -> ir.WalkResult:
        inner = inner.operation
        if inner.name not in fusion.OPS and not op.context.is_registered_operation(inner.name):
            raise CompileError(f"{inner.location}: unknown operation '{inner.name}'")
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    fusion.verify(op)


def diagnostics(error: ir.MLIRError) -> str:
    """The diagnostics inside an MLIRError, one a line, each with its location."""
    lines = []
    for diagnostic in error.error_diagnostics:
        lines.append(f"{diagnostic.location}: {diagnostic.message}")
        lines.extend(f"  note: {note.location}: {note.message}" for note in diagnostic.notes)
    return "\n".join(lines) or str(error)


def run_pipeline(op: ir.Operation, pipeline: str) -> None:
    """Runs a textual pipeline of MLIR's own passes on `op`; raises `CompileError` naming the pipeline if it fails."""
    try:
        PassManager.parse(pipeline, op.context).run(op)
    except ir.MLIRError as error:
        raise CompileError(f"{pipeline} failed: {diagnostics(error)}") from None


def text(op: ir.Operation, *, elements: int = 16, debug_info: bool = False) -> str:
    """`op` as MLIR text; constants with more than `elements` elements are elided."""
    return op.get_asm(large_elements_limit=elements, enable_debug_info=debug_info)


def walk(op: ir.Operation | ir.Module, *names: str) -> list[ir.Operation]:
    """The operations inside `op` that are called one of `names`, in program order, outer before inner."""
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.operation.name in names:
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def function(module: ir.Module | ir.Operation, name: str) -> ir.Operation:
    """The function `name` of `module`; raises `CompileError` if there is none."""
    for op in walk(module, "func.func"):
        if ir.StringAttr(op.attributes["sym_name"]).value == name:
            return op
    raise CompileError(f"the module has no function @{name}")


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The operation that `value` is a result of; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def captured_values(op: ir.Operation) -> list[ir.Value]:
    """What `op` and the ops in its regions read from outside of `op`, operands first, each once."""
    found: dict[ir.Value, None] = dict.fromkeys(op.operands)

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for operand in inner.operation.operands:
            if not is_inside(operand, op):
                found.setdefault(operand)
        return ir.WalkResult.ADVANCE

    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                inner.operation.walk(visit)
    return list(found)


def remap_operands(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> None:
    """Replaces the operands of `op` and of everything inside it by what `known` has for them."""

    def visit(inner: ir.Operation) -> ir.WalkResult:
        inner = inner.operation
        for number, operand in enumerate(inner.operands):
            if operand in known:
                inner.operands[number] = known[operand]
        return ir.WalkResult.ADVANCE

    op.walk(visit)


def is_inside(value: ir.Value, op: ir.Operation) -> bool:
    """Whether `value` is defined in a region of `op`."""
    owner = value.owner
    parent = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    while parent is not None:
        if parent.operation == op:
            return True
        parent = parent.operation.parent
    return False
