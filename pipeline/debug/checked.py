"""compile(check=True): the program is interpreted after every pass on tensors, and its code is run."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.debug.bisection import ROUNDING
from pipeline.debug.execution import NoDevice, compared
from pipeline.debug.extraction import Part
from pipeline.debug.finding import Finding
from pipeline.debug.judgement import FOLDED, difference, tolerance_of
from pipeline.debug.program_call import ProgramCall
from pipeline.debug.reduction import judge_of, reduced
from pipeline.debug.tracing import Sources, outcome, sources_in
from pipeline.debug.trail import LAST, MEMORY, written
from pipeline.errors import CheckError
from pipeline.mlir import ir
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.passmanager.pass_runner import Instrumentation, PipelineStep
from pipeline.remarks import note
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.interface.code import Code


class Checker(Instrumentation):
    """Sees the passes of a compilation; raises `CheckError` at the first that changes the numbers."""

    def __init__(self, called: ProgramCall):
        self._called, module = called, called.program.module
        self._tolerance = tolerance_of(module, FOLDED)
        self._reference = outcome(module, called.call)
        self._last, self._on_tensors = written(module), True
        self._sources: Sources | None = None
        self._marked, self._since = self._last, list[PipelineStep]()

    def before(self, step: PipelineStep, op: ir.Operation) -> None:
        """A pass is about to run."""
        self._on_tensors &= step.pass_.name not in LAST
        if step.pass_.name in MEMORY and self._sources is None:
            self._sources = sources_in(self._called.program.module)

    def after(self, step: PipelineStep, op: ir.Operation) -> None:
        """It has run on one of its ops."""
        if not self._on_tensors:
            return
        now = written(self._called.program.module)
        if self._since[-1:] != [step]:  # else it has run on another of its ops
            self._since.append(step)
        if now == self._last:
            return
        got = outcome(self._called.program.module, self._called.call, sources=self._sources)
        if step.pass_.name in ROUNDING:
            self._reference = got
        elif difference(self._reference, got, self._tolerance) is not None:
            raise CheckError(f"check: {self._finding(step)}")
        self._last = now
        if self._sources is None:
            self._marked, self._since = now, []

    def check_code(self, code: Code | DeviceCode, stages: Mapping[str, str]) -> None:
        """Compares the code with the program as it was before its results had memory of the caller's.

        A remark says so where its device is not here.
        """
        module = ir.Module.parse(self._marked, self._called.program.module.context)
        try:
            problem, expected, got = compared(self._called, code, module, stages)
        except NoDevice as error:
            note("check", "missed", "builtin.module", str(error))
            return
        if problem is not None:
            where = "check: the numbers change behind the passes on tensors (pipeline-bisect finds out in which kernel)"
            raise CheckError(f"{where}: {problem}\n  expected: {expected}\n  got: {got}")

    def _finding(self, step: PipelineStep) -> Finding:
        before = ir.Module.parse(self._marked, self._called.program.module.context)
        pipeline = str(PassPipeline(tuple(self._since)))
        judge = judge_of(pipeline, self._tolerance)
        part = reduced(Part(before, self._called.call), judge)
        verdict = judge(part)
        return Finding("wrong", step.pass_.name, pipeline, part, verdict.problem or "", verdict.expected, verdict.got)
