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
    "context",
    "ext",
    "func",
    "ir",
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
]


def context() -> ir.Context:
    """A new MLIR context with upstream's dialects, torch-mlir's and ours."""
    from pipeline.dialects import load_dialects

    ctx = ir.Context()
    torch_dialect.register_dialect(ctx)
    load_dialects(ctx)
    return ctx


def parse(source: str, ctx: ir.Context, name: str = "<text>") -> ir.Module:
    """Parses MLIR text; raises `CompileError` with the parser's own message and position."""
    try:
        return ir.Module.parse(source, ctx)
    except ir.MLIRError as error:
        raise CompileError(f"{name}: not valid MLIR: {diagnostics(error)}") from None


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
