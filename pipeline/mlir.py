"""The one door to MLIR: the only file that imports the MLIR Python bindings.

The bindings are those inside the `torch_mlir` wheel; two builds of MLIR do not mix in a process, so everything else
imports from here. Nothing in this file imports torch.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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

from pipeline.diagnostics import Diagnostic, Severity
from pipeline.errors import CompileError

__all__ = [
    "PassManager",
    "affine",
    "arith",
    "bufferization",
    "context",
    "dialect_names",
    "diagnostics",
    "ext",
    "func",
    "ir",
    "libraries",
    "linalg",
    "llvm",
    "memref",
    "parse",
    "position",
    "rewrite",
    "run_pipeline",
    "scf",
    "tensor",
    "text",
    "torch_dialect",
    "verify",
]


def context() -> ir.Context:
    """A new MLIR context with upstream's dialects, torch-mlir's and ours."""
    from pipeline.dialects import load_dialects

    ctx = ir.Context()
    torch_dialect.register_dialect(ctx)
    load_dialects(ctx)
    return ctx


def libraries() -> list[Path]:
    """The shared libraries of the wheel."""
    return sorted((Path(ir.__file__).parent / "_mlir_libs").glob("*.so"))


def dialect_names(ctx: ir.Context) -> list[str]:
    """The names of all dialects that `ctx` knows.

    The bindings have no listing, but the parser's note on an unknown dialect carries one.
    """
    try:
        ir.Module.parse("no_such_dialect.op", ctx)
    except ir.MLIRError as error:
        notes = [note.message for diagnostic in error.error_diagnostics for note in diagnostic.notes]
        listing = re.search(r"Available dialects: (.*?)(?: \(\* corresponding|;|$)", "".join(notes))
        return sorted(name.removesuffix(" (*)") for name in listing.group(1).split(", ")) if listing else []
    return []


def parse(source: str, ctx: ir.Context, name: str = "<text>") -> ir.Module:
    """Parses MLIR text; raises `CompileError` with the parser's own message and position."""
    try:
        return ir.Module.parse(source, ctx)
    except ir.MLIRError as error:
        found = diagnostics(error)
        raise CompileError(f"{name}: not valid MLIR: {_lines(found)}", diagnostics=found) from None


def diagnostics(error: ir.MLIRError) -> list[Diagnostic]:
    """The diagnostics inside an MLIRError; where it has none, its message as one."""
    return [diagnostic(info) for info in error.error_diagnostics] or [Diagnostic("error", str(error).strip())]


def diagnostic(info: ir.DiagnosticInfo) -> Diagnostic:
    """One diagnostic of MLIR's, fit to outlive the context; the note that prints the whole op is left out."""
    severity: Severity = info.severity.name.lower()
    notes = [diagnostic(note) for note in info.notes if not note.message.startswith("see current operation")]
    return Diagnostic(severity, info.message.strip(), *position(info.location), tuple(notes))


def position(location: Any) -> tuple[str, int, int]:
    """File, line and column of an MLIR location: a named one's child, the first of a fused one, the callee of a call.

    `("", 0, 0)` where it names no file.
    """
    if type(location) is ir.Location:  # as the diagnostics of errors have it: not yet cast to its kind
        with location.context:
            location = ir.Location.from_attr(location.attr)
    if isinstance(location, ir.FileLineColLoc):
        return location.filename, location.start_line, location.start_col
    inner = []
    if isinstance(location, ir.NameLoc):
        inner = [location.child_loc]
    elif isinstance(location, ir.FusedLoc):
        inner = location.locations
    elif isinstance(location, ir.CallSiteLoc):
        inner = [location.callee, location.caller]
    return next((found for found in map(position, inner) if found[1]), ("", 0, 0))


def verify(op: ir.Operation) -> None:
    """Checks `op` and all inside it; raises `CompileError` with the verifier's own message and position."""
    try:
        op.verify()
    except ir.MLIRError as error:
        found = diagnostics(error)
        raise CompileError(_lines(found), diagnostics=found) from None


def run_pipeline(op: ir.Operation, pipeline: str, *, verify_each: bool = True) -> None:
    """Runs a textual pipeline of MLIR's own passes on `op`; raises `CompileError` naming the pipeline if it fails."""
    manager = PassManager.parse(pipeline, op.context)
    manager.enable_verifier(verify_each)
    try:
        manager.run(op)
    except ir.MLIRError as error:
        found = diagnostics(error)
        raise CompileError(f"{pipeline} failed: {_lines(found)}", diagnostics=found) from None


def text(op: ir.Operation, *, elements: int = 16, debug_info: bool = False) -> str:
    """`op` as MLIR text; constants with more than `elements` elements are elided."""
    return op.get_asm(large_elements_limit=elements, enable_debug_info=debug_info)


def _lines(found: list[Diagnostic]) -> str:
    return "\n".join(map(str, found))
