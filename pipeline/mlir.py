"""The one door to MLIR: the only file that imports the MLIR Python bindings.

The bindings are those inside the `torch_mlir` wheel; two builds of MLIR do not mix in a process, so everything else
imports from here. Nothing in this file imports torch.
"""

from __future__ import annotations

import importlib
import re
import sys
import types
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

from torch_mlir import ir, rewrite
from torch_mlir._mlir_libs import _torchMlir
from torch_mlir.dialects import (
    affine,
    arith,
    bufferization,
    ext,
    func,
    linalg,
    math,
    memref,
    scf,
    tensor,
)
from torch_mlir.passmanager import PassManager

from pipeline.diagnostics import Diagnostic, Severity
from pipeline.errors import CompileError

__all__ = [
    "PassManager",
    "Verification",
    "affine",
    "arith",
    "seen_through",
    "bufferization",
    "called_function",
    "callee",
    "calls_of",
    "captured_values",
    "clone",
    "constant_integer",
    "context",
    "dialect_names",
    "defining_op",
    "diagnostics",
    "ext",
    "func",
    "function",
    "ir",
    "is_inside",
    "libraries",
    "linalg",
    "math",
    "memref",
    "ops_of",
    "parse",
    "position",
    "refusal",
    "remap_operands",
    "rewrite",
    "run_pipeline",
    "scf",
    "symbol_name",
    "tensor",
    "terminator",
    "text",
    "to_llvm_ir",
    "verify",
    "walk",
    "walk_innermost_first",
]

# The bindings look for a Python module of the dialect whenever they meet an op; what is not there, they try to import
# again for every op.
sys.modules.setdefault("torch_mlir.dialects.fusion", types.ModuleType("torch_mlir.dialects.fusion"))


#: When MLIR's verifier looks at what MLIR's passes make: after each of them, which takes longer than most of them do,
#: once after the last, or never.
Verification = Literal["each", "end", "never"]


class _Late:
    """The module of a dialect, imported when something of it is asked for: the large ones take longer to import than
    everything else that a driver needs.
    """

    def __init__(self, dialect: str):
        self._module = f"torch_mlir.dialects.{dialect}"

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)


gpu: Any = _Late("gpu")
nvgpu: Any = _Late("nvgpu")
vector: Any = _Late("vector")


def context() -> ir.Context:
    """A new MLIR context with upstream's dialects, torch-mlir's, ours and those of plugins."""
    from pipeline.dialects import load_plugin_dialects

    ctx = ir.Context()
    _torchMlir.register_dialect(ctx)
    ctx.allow_unregistered_dialects = True  # for the fusion dialect, see there; `parse` refuses any other
    load_plugin_dialects(ctx)
    return ctx


def libraries() -> list[Path]:
    """The shared libraries of the wheel."""
    return sorted((Path(ir.__file__).parent / "_mlir_libs").glob("*.so"))


def dialect_names(ctx: ir.Context) -> list[str]:
    """The names of the dialects that are registered in `ctx` or loaded into it.

    The bindings have no listing, but the parser's note on an unknown dialect carries one.
    """
    try:
        ir.Module.parse("no_such_dialect.op", ctx)
    except ir.MLIRError as error:
        notes = [note.message for diagnostic in error.error_diagnostics for note in diagnostic.notes]
        listing = re.search(r"Available dialects: (.*?)(?: \(\* corresponding|;|$)", "".join(notes))
        return sorted(name.removesuffix(" (*)") for name in listing.group(1).split(", ")) if listing else []
    return []


def parse(source: str, ctx: ir.Context, name: str = "<text>", *, allow_unregistered: bool = False) -> ir.Module:
    """Parses and verifies MLIR text; raises `CompileError` with the parser's own message and position.

    Ops of dialects that nobody defined are refused unless `allow_unregistered`.
    """
    try:
        module = ir.Module.parse(source, ctx)
    except ir.MLIRError as error:
        found = diagnostics(error)
        raise CompileError(f"{name}: not valid MLIR: {_lines(found)}", diagnostics=found) from None
    if not allow_unregistered:
        _refuse_unknown_ops(module.operation)
    verify(module.operation)
    return module


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
    manager = PassManager.parse(pipeline, op.context)
    manager.enable_verifier(verify == "each")
    try:
        manager.run(op)
        if verify == "end":
            op.verify()
    except ir.MLIRError as error:
        found = diagnostics(error)
        raise CompileError(f"{pipeline} failed: {_lines(found)}", diagnostics=found) from None


def text(op: ir.Operation, *, elements: int | None = 16, debug_info: bool = False) -> str:
    """`op` as MLIR text; constants with more than `elements` elements are elided, none if it is None."""
    return op.get_asm(large_elements_limit=elements, enable_debug_info=debug_info)


def to_llvm_ir(module: ir.Module) -> str:
    """A module in LLVM dialect as the text of LLVM IR."""
    dialect = importlib.import_module("torch_mlir.dialects.llvm")
    return dialect.translate_module_to_llvmir(module.operation)


def walk(op: ir.Operation | ir.Module, *names: str) -> list[ir.Operation]:
    """The operations inside `op` that are called one of `names`, in program order, outer before inner."""
    found: list[ir.Operation] = []
    inside = ir.WalkResult.SKIP if names == ("func.func",) else ir.WalkResult.ADVANCE  # there are none in functions

    def visit(inner: ir.Operation) -> ir.WalkResult:
        inner = inner.operation
        if inner.name in names:
            found.append(inner)
            return inside
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def walk_innermost_first(op: ir.Operation | ir.Module, *names: str) -> list[ir.Operation]:
    """The operations inside `op` that are called one of `names`, inner before outer."""
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.operation.name in names:
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.POST_ORDER)
    return found


def ops_of(root: ir.Operation) -> list[ir.Operation]:
    """`root` and all operations inside it, in program order, outer before inner."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op.operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def function(module: ir.Module | ir.Operation, name: str) -> ir.Operation:
    """The function `name` of `module`; raises `CompileError` if there is none."""
    for op in walk(module, "func.func"):
        if symbol_name(op) == name:
            return op
    raise CompileError(f"the module has no function @{name}")


def symbol_name(op: ir.Operation) -> str:
    """The name of a function, or of another op that has one."""
    return ir.StringAttr(op.attributes["sym_name"]).value


def callee(call: ir.Operation) -> str:
    """The name of the function that a func.call calls."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def called_function(call: ir.Operation) -> ir.Operation:
    """The function that a func.call calls."""
    module = call
    while module.name != "builtin.module":
        module = module.parent.operation
    return function(module, callee(call))


def calls_of(root: ir.Operation | ir.Module) -> dict[str, list[ir.Operation]]:
    """The func.calls inside `root` in program order, by the name of the function that they call."""
    found: dict[str, list[ir.Operation]] = {}
    for call in walk(root, "func.call"):
        found.setdefault(callee(call), []).append(call)
    return found


def terminator(block: ir.Block) -> ir.Operation:
    """The last op of a block."""
    return block.operations[len(block.operations) - 1].operation


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The operation that `value` is a result of; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def seen_through(value: ir.Value, names: Collection[str]) -> ir.Value:
    """What lies behind `value` and any number of ops called one of `names`, by their first operands."""
    while (op := defining_op(value)) is not None and op.name in names:
        value = op.operands[0]
    return value


def constant_integer(value: ir.Value) -> int | None:
    """The number that an integer or index `value` is known to be; a true i1 is 1."""
    producer = defining_op(value)
    if producer is None or producer.name != "arith.constant":
        return None
    attribute = producer.attributes["value"]
    if isinstance(attribute, ir.BoolAttr):
        return int(attribute.value)
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


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


def clone(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> ir.Operation:
    """A copy of `op` at the insertion point, on what `known` has for the values that it reads.

    `known` learns the results of the copy.
    """
    copy = op.clone()
    remap_operands(copy, known)
    known.update(zip(op.results, copy.results, strict=True))
    return copy


def is_inside(value: ir.Value, op: ir.Operation) -> bool:
    """Whether `value` is defined in a region of `op`."""
    owner = value.owner
    parent = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    while parent is not None:
        if parent.operation == op:
            return True
        parent = parent.operation.parent
    return False


def _lines(found: list[Diagnostic]) -> str:
    return "\n".join(map(str, found))
