"""StableHLO, TOSA and linalg, as text or bytecode → linalg on tensors with a function @main, as text.

All of it happens in a child process: MLIR's readers and upstream's passes may abort on what they do not expect.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline import supervised
from pipeline.errors import CompileError, LoweringError, PipelineError, UnsupportedOpError
from pipeline.frontend.mlir_formats.reading import read_bytecode
from pipeline.frontend.mlir_formats.stablehlo import lower_stablehlo
from pipeline.frontend.mlir_formats.tosa import lower_tosa
from pipeline.mlir import context, ir, parse, register_stablehlo, symbol_name, text, verify, walk_where
from pipeline.remarks import source_line
from pipeline.supervised import Lost, ResourceLimits

#: The dialects that are lowered here.
DIALECTS = ("stablehlo", "chlo", "tosa")


@dataclass(frozen=True)
class LinalgText:
    """What came of a module.

    Attributes:
        text: linalg on tensors, with locations.
        unsigned: (`argument` or `result`, its number, dtype) of each tensor of unsigned integers, of which linalg's
            types no longer tell.
    """

    text: str
    unsigned: tuple[tuple[str, int, str], ...] = ()


def is_lowered_here(source: str | bytes) -> bool:
    """Whether a source is of those dialects, or bytecode, of which nothing is known yet."""
    return isinstance(source, bytes) or any(f"{dialect}." in source for dialect in DIALECTS)


def as_linalg(source: str | bytes, name: str) -> LinalgText:
    """A module in linalg on tensors.

    Raises:
        CompileError: it is no valid MLIR.
        UnsupportedOpError: ops of it cannot be lowered; lists all of them.
        LoweringError: MLIR gave up on it, or ended the process.
    """
    if not supervised.is_possible():
        return _as_linalg(source, name)
    try:
        return supervised.run(lambda: _as_linalg(source, name), ResourceLimits.of_environment(), lambda _: None)
    except Lost as lost:
        what = f"in {lost.doing}" if lost.doing else "as it was read; is it damaged, or of another version of MLIR?"
        raise LoweringError(f"{name}: MLIR {lost.reason} {what}") from None


def _as_linalg(source: str | bytes, name: str) -> LinalgText:
    ctx = context()
    register_stablehlo(ctx)
    ctx.enable_multithreading(False)  # a child has no threads but the one that forked
    module = _read(source, name, ctx)
    _name_main(module, name)
    unsigned = _unsigned(module)
    names = {op.name.partition(".")[0] for op in walk_where(module, _is_lowered_here)}
    if names & {"stablehlo", "chlo"}:
        lower_stablehlo(module)
    if "tosa" in names:
        lower_tosa(module)
    _refuse_rest(module)
    verify(module.operation)
    return LinalgText(text(module.operation, elements=None, debug_info=True), unsigned)


def _read(source: str | bytes, name: str, ctx: ir.Context) -> ir.Module:
    if isinstance(source, str):
        return parse(source, ctx, name)
    try:
        return read_bytecode(source, ctx)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        first = next(iter(str(error).splitlines()), "")
        raise CompileError(
            f"{name}: bytecode that cannot be read: damaged, or of another version of MLIR: {first}"
        ) from None


def _is_lowered_here(op: ir.Operation) -> bool:
    return op.name.partition(".")[0] in DIALECTS


def _name_main(module: ir.Module, name: str) -> None:
    """Calls the only public function @main, if none is called that."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    if any(symbol_name(function) == "main" for function in functions):
        return
    public = [function for function in functions if "sym_visibility" not in function.attributes]
    if len(public) != 1:
        raise PipelineError(f"{name}: expected a function @main, or a single public one")
    public[0].attributes["sym_name"] = ir.StringAttr.get("main", module.context)


def _unsigned(module: ir.Module) -> tuple[tuple[str, int, str], ...]:
    """The tensors of unsigned integers that @main takes and gives."""
    main = next(
        op.operation
        for op in module.body.operations
        if op.operation.name == "func.func" and symbol_name(op.operation) == "main"
    )
    kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    found = []
    for what, kinds in (("argument", kind.inputs), ("result", kind.results)):
        for number, each in enumerate(kinds):
            element = str(ir.RankedTensorType(each).element_type) if isinstance(each, ir.RankedTensorType) else ""
            if element.startswith("ui"):
                found.append((what, number, f"uint{element[2:]}"))
    return tuple(found)


def _refuse_rest(module: ir.Module) -> None:
    """Raises `UnsupportedOpError` if ops of those dialects are left."""
    left = walk_where(module, _is_lowered_here)
    outer = [op for op in left if not op.name.endswith(".return")]
    if outer:
        rows = dict.fromkeys((op.name, source_line(op.location), "no pass lowers it to linalg") for op in outer)
        raise UnsupportedOpError(list(rows))
