"""Modules and ops as wholes: parsing, verification, MLIR's passes, printing; MLIR's messages as ours."""

from __future__ import annotations

import importlib
import io
from typing import Any, Literal

from pipeline import supervised
from pipeline.diagnostics import Diagnostic, Severity
from pipeline.errors import CompileError
from pipeline.mlir.bindings import ir
from pipeline.mlir.shared_context import pass_manager

#: When the verifier looks at what passes make: after each of them, which takes longer than most of them do, once after
#: the last, or never.
Verification = Literal["each", "end", "never"]


def parse(source: str, ctx: ir.Context, name: str = "<text>", *, allow_unregistered: bool = False) -> ir.Module:
    """Parses and verifies MLIR text; raises `CompileError` with the parser's own message and position.

    Ops of dialects that nobody defined are refused unless `allow_unregistered`.
    """
    if "tm_tensor." in source:  # torch-mlir's scans, scatters and sorts
        load_dialects_of("builtin.module(func.func(convert-torch-to-tmtensor))", ctx)
    try:
        module = ir.Module.parse(source, ctx)
    except ir.MLIRError as error:
        found = diagnostics(error)
        raise CompileError(f"{name}: not valid MLIR: {_lines(found)}", diagnostics=found) from None
    if not allow_unregistered:
        _refuse_unknown_ops(module.operation)
    verify(module.operation)
    return module


def load_dialects_of(pipeline: str, ctx: ir.Context) -> None:
    """Loads the dialects that only MLIR's passes of a pipeline bring in, by running them on nothing."""
    with ctx, ir.Location.unknown():
        run_pipeline(ir.Module.create().operation, pipeline)


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


def refusal(op: ir.Operation, reason: str) -> CompileError:
    """The error that `op` cannot be compiled; it points to the op, and says its source line where that is known."""
    file, line, column = position(op.location)
    message = f"{file}:{line}: {reason}" if line else reason
    return CompileError(message, [Diagnostic("error", reason, file, line, column)])


def verify(op: ir.Operation) -> None:
    """MLIR's verifier and ours for the dialect that MLIR does not know; raises `CompileError` with the position."""
    from pipeline.dialects import fusion

    try:
        op.verify()
    except ir.MLIRError as error:
        found = diagnostics(error)
        raise CompileError(_lines(found), diagnostics=found) from None
    fusion.verify(op)


def _refuse_unknown_ops(root: ir.Operation) -> None:
    from pipeline.dialects import fusion

    unknown: list[Diagnostic] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        if op.name in fusion.OPS or root.context.is_registered_operation(op.name):
            return ir.WalkResult.ADVANCE
        unknown.append(Diagnostic("error", f"unknown operation '{op.name}'", *position(op.location)))
        return ir.WalkResult.INTERRUPT

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    if unknown:
        raise CompileError(_lines(unknown), diagnostics=unknown)


def run_pipeline(op: ir.Operation, pipeline: str, *, verify: Verification = "end") -> None:
    """Runs a textual pipeline of MLIR's own passes on `op`; raises `CompileError` naming the pipeline if it fails."""
    supervised.announce(pipeline)
    try:
        pass_manager(pipeline, op.context, verify == "each").run(op)
        if verify == "end":
            op.verify()
    except ir.MLIRError as error:
        found = diagnostics(error)
        raise CompileError(f"{pipeline} failed: {_lines(found)}", diagnostics=found) from None


def text(op: ir.Operation, *, elements: int | None = 16, debug_info: bool = False) -> str:
    """`op` as MLIR text; constants with more than `elements` elements are elided, none if it is None."""
    return op.get_asm(large_elements_limit=elements, enable_debug_info=debug_info)


def bytecode(op: ir.Operation) -> bytes:
    """`op` as MLIR's bytecode, with its locations."""
    data = io.BytesIO()
    op.write_bytecode(data)
    return data.getvalue()


def to_llvm_ir(module: ir.Module) -> str:
    """A module in LLVM dialect as the text of LLVM IR."""
    dialect = importlib.import_module("torch_mlir.dialects.llvm")
    return dialect.translate_module_to_llvmir(module.operation)


def _lines(found: list[Diagnostic]) -> str:
    return "\n".join(map(str, found))
