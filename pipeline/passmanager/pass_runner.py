"""The steps of a pass pipeline: a pass, the ops that it is nested in, and how it runs on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.diagnostics import Diagnostic
from pipeline.errors import CompileError, PipelineError
from pipeline.mlir import diagnostics, ir, position, run_pipeline, verify
from pipeline.passmanager import mlir_passes
from pipeline.passmanager.base import Pass
from pipeline.plugins import one_line

ANY = "any"


@dataclass(frozen=True)
class MlirPass:
    """One of MLIR's own passes as an element of a pipeline."""

    name: str
    options: str = ""

    @property
    def anchor(self) -> str:
        """The op that the pass is restricted to, or `any`."""
        return mlir_passes.PASSES[self.name]

    def __str__(self) -> str:
        return f"{self.name}{{{self.options}}}" if self.options else self.name


@dataclass(frozen=True)
class PipelineStep:
    """A pass at its place in a pipeline.

    Attributes:
        pass_: the pass with its options.
        anchors: the ops that it is nested in, outermost first; the outermost is the module that the pipeline runs on.
    """

    pass_: Pass | MlirPass
    anchors: tuple[str, ...]

    def targets(self, root: ir.Operation) -> list[ir.Operation]:
        """The ops that the pass runs on."""
        ops = [root]
        for anchor in self.anchors[1:]:
            ops = [child for op in ops for child in _children(op) if _is_anchored(child, anchor)]
        return [target for op in ops for target in _outermost(op, self.pass_.anchor)]

    def run(self, op: ir.Operation, verified: bool = True) -> None:
        """Runs the pass on one of its targets, and the verifier after it; raises `CompileError` naming the pass."""
        if isinstance(self.pass_, MlirPass):
            self._run_mlir(self.pass_, op, verified)
        else:
            self._run_ours(self.pass_, op, verified)

    def _run_mlir(self, pass_: MlirPass, op: ir.Operation, verified: bool) -> None:
        try:
            run_pipeline(op, f"{op.name}({pass_})", verify="each" if verified else "never")
        except CompileError as error:
            raise self._failure(op, _said(error.diagnostics), error.diagnostics) from None

    def _run_ours(self, pass_: Pass, op: ir.Operation, verified: bool) -> None:
        try:
            with op.context:
                pass_.run(op)
        except PipelineError as error:
            raise self._failure(op, str(error), getattr(error, "diagnostics", ())) from error
        except ir.MLIRError as error:
            raise self._failure(op, _said(diagnostics(error)), diagnostics(error)) from error
        except Exception as error:  # a defect of the pass, which may be a user's: one clear error all the same
            raise self._failure(op, one_line(error)) from error
        if not verified:
            return
        try:
            verify(op)
        except CompileError as error:
            raise self._failure(op, f"it left invalid IR: {error}", error.diagnostics) from None

    def _failure(self, op: ir.Operation, reason: str, found: Sequence[Diagnostic] = ()) -> CompileError:
        message = f"pass '{self.pass_.name}' failed on {describe(op)}: {reason}"
        return CompileError(message, found or [Diagnostic("error", message, *position(op.location))])


class Instrumentation:
    """What wants to look at a run: IR printing, timing, statistics. Each call gets the step and the op it runs on."""

    def before(self, step: PipelineStep, op: ir.Operation) -> None:
        """Called before a pass runs on `op`."""

    def after(self, step: PipelineStep, op: ir.Operation) -> None:
        """Called after a pass ran on `op` and the result was verified."""

    def failed(self, step: PipelineStep, op: ir.Operation) -> None:
        """Called after a pass failed on `op` or left invalid IR; `op` may then be in any state."""


def run_watched(step: PipelineStep, op: ir.Operation, watchers: Sequence[Instrumentation], verified: bool) -> None:
    """Runs `step` on `op` while the watchers look; the first to see the start is the last to see the end."""
    for watcher in watchers:
        watcher.before(step, op)
    try:
        step.run(op, verified)
    except PipelineError:
        for watcher in reversed(watchers):
            watcher.failed(step, op)
        raise
    for watcher in reversed(watchers):
        watcher.after(step, op)


def describe(op: ir.Operation) -> str:
    """`func.func @main`: the op's name, and its symbol if it has one."""
    if "sym_name" not in op.attributes:
        return op.name
    return f"{op.name} @{ir.StringAttr(op.attributes['sym_name']).value}"


def _children(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            yield from (child.operation for child in block.operations)


def _is_anchored(op: ir.Operation, anchor: str) -> bool:
    return op.name == anchor or (anchor == ANY and op.has_trait(ir.IsIsolatedFromAboveTrait))


def _outermost(op: ir.Operation, anchor: str) -> list[ir.Operation]:
    """`op` if it is called `anchor`, else the ops inside it that are, without those inside of another one."""
    if anchor in (ANY, op.name):
        return [op]
    found = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.operation.name != anchor:
            return ir.WalkResult.ADVANCE
        found.append(inner.operation)
        return ir.WalkResult.SKIP

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _said(found: Sequence[Diagnostic]) -> str:
    return "\n".join(map(str, found))
