"""The way of a program through the passes: the module after each of them, made by a child that may crash."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline import supervised
from pipeline.debug.tracing import Sources, sources_in
from pipeline.errors import CompileError, PipelineError
from pipeline.fusion_rules.rules import FusionRules
from pipeline.mlir import ir, single_threaded, text
from pipeline.options import Options
from pipeline.passmanager.pass_pipeline import PassPipeline, watched
from pipeline.passmanager.pass_runner import Instrumentation, PipelineStep
from pipeline.program import Program
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.interface.code import Code
from pipeline.supervised import Lost, ResourceLimits
from pipeline.targets import Target

#: The passes that have @main take memory, for its results, too; then it is not marked where its parameters come from.
MEMORY = ("add-workspace", "results-to-out-params")

#: The first passes that make buffers or blocks of threads of tensors: from there on there is nothing to interpret.
LAST = ("one-shot-bufferize", "tile-groups-to-blocks", "mark-flash-attention")


@dataclass(frozen=True)
class Snapshot:
    """A module, and the pass that left it.

    Attributes:
        name: of the pass; empty for the module as imported.
        pipeline: the pass as a pipeline for pipeline-opt.
        bytecode: the module.
        sources: where its parameters come from, once they are not marked any more.
        number: how many passes made it.
    """

    name: str
    pipeline: str
    bytecode: bytes
    sources: Sources | None = None
    number: int = 0

    def module(self, context: ir.Context) -> ir.Module:
        """The module, in a context that has the dialects of the one that it comes from."""
        return ir.Module.parse(self.bytecode, context)


@dataclass
class Trail:
    """What a compilation left.

    Attributes:
        snapshots: the modules on tensors: as imported, and after each pass that changed something.
        passes: all passes that were begun, as (name, pipeline).
        failed: the number in `passes` of the one that crashed or raised an error; None if none did.
        failure: what it said.
        kernels: the number in `snapshots` of the module that the target was given.
        kernel_passes: how many of `passes` made that.
        code: what came out, if nothing failed.
        stages: the text of the stages on the way there.
    """

    snapshots: list[Snapshot]
    passes: list[tuple[str, str]] = field(default_factory=list)
    failed: int | None = None
    failure: str = ""
    kernels: int | None = None
    kernel_passes: int = 0
    code: Code | DeviceCode | None = None
    stages: dict[str, str] = field(default_factory=dict)

    @property
    def marked(self) -> Snapshot:
        """The last module whose parameters are marked."""
        return [snapshot for snapshot in self.snapshots if snapshot.sources is None][-1]

    def pipeline_between(self, before: Snapshot, after: Snapshot) -> str:
        """The passes that made one module of another."""
        return join([pipeline for _, pipeline in self.passes[before.number : after.number]])

    @property
    def pipeline_behind(self) -> str:
        """The passes behind the module that the target was given, as a pipeline for pipeline-opt."""
        return join([pipeline for _, pipeline in self.passes[self.kernel_passes :]])


def join(pipelines: Sequence[str]) -> str:
    """Pipelines in a row as one."""
    steps = [step for pipeline in pipelines for step in PassPipeline.parse(pipeline).steps]
    return str(PassPipeline(tuple(steps)))


def written(module: ir.Module) -> bytes:
    """The module as bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


@dataclass(frozen=True)
class _Begun:
    """A pass that is about to run."""

    name: str
    pipeline: str


@dataclass(frozen=True)
class _StageText:
    """The text of a stage of the compilation."""

    name: str
    text: str


def _tell_stage(name: str, code: ir.Module | str) -> None:
    supervised.tell(_StageText(name, code if isinstance(code, str) else text(code.operation, elements=None)))


class _Recorder(Instrumentation):
    """In the child: tells the parent of each pass, and hands it each module that differs from the one before."""

    def __init__(self, module: ir.Module):
        self._module, self._last, self._on_tensors = module, written(module), True
        self._step: PipelineStep | None = None
        self._sources: Sources | None = None

    def before(self, step: PipelineStep, op: ir.Operation) -> None:
        """A pass is about to run on one of its ops."""
        if step is self._step:
            return
        self._step = step
        self._on_tensors &= step.pass_.name not in LAST
        if step.pass_.name in MEMORY and self._sources is None:
            self._sources = sources_in(self._module)
        supervised.tell(_Begun(step.pass_.name, str(PassPipeline((step,)))))

    def after(self, step: PipelineStep, op: ir.Operation) -> None:
        """It has run."""
        if not self._on_tensors:
            return
        now = written(self._module)
        if now != self._last:
            self._last = now
            supervised.tell(Snapshot(step.pass_.name, str(PassPipeline((step,))), now, self._sources))


def follow(program: Program, target: Target, rules: str | FusionRules, options: Options) -> Trail:
    """Compiles a program in a child, and keeps what the passes made of it; its module stays as it is."""
    from pipeline.lowering import lower

    trail = Trail([Snapshot("", "", written(program.module))])

    def work() -> Code | DeviceCode:
        with watched(_Recorder(program.module)):
            return lower(program, target, rules, options, _tell_stage)

    def hear(told: Snapshot | _Begun | _StageText) -> None:
        if isinstance(told, Snapshot):
            trail.snapshots.append(replace(told, number=len(trail.passes)))
            return
        if isinstance(told, _StageText):
            trail.stages[told.name] = told.text
            if told.name == "kernels":
                trail.kernels, trail.kernel_passes = len(trail.snapshots) - 1, len(trail.passes)
            return
        trail.passes.append((told.name, told.pipeline))

    try:
        trail.code = in_child(program.module.context, work, hear)
    except (Lost, CompileError) as error:
        trail.failed, trail.failure = len(trail.passes) - 1, str(error)
    return trail


def in_child(context: ir.Context, work: Any, hear: Any = lambda told: None) -> Any:
    """What `work` returns in a child; raises what it raises, or `Lost` if it crashes or runs away."""
    if not supervised.is_possible():
        raise PipelineError("bisect: this system has no child processes, in which what crashes could be tried")
    with single_threaded(context):
        return supervised.run(work, ResourceLimits.of_environment(), hear)
