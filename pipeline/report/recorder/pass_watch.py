"""Sees each pass run: how long it takes, what it changes, what memory it plans."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pipeline.mlir import ir, symbol_name, walk
from pipeline.passmanager.pass_runner import Instrumentation, PipelineStep
from pipeline.remarks import Remark
from pipeline.report.recorder.memory import plan_of
from pipeline.report.recorder.text_changes import change
from pipeline.report.recording import FunctionChange, RecordedPass, Recording

#: What is kept of the IR between the stages: after which pass, and under which name.
_KEPT_AFTER = {"plan-memory": "buffers", "plan-kernel-scratch": "loops"}

#: In constants; what is longer is elided.
_ELEMENTS = 8

#: Of the text of one function.
_MOST_LINES = 2500


class PassWatch(Instrumentation):
    """Writes down what it sees; `stage` is what the passes work towards."""

    def __init__(self, recording: Recording, remarks: Sequence[Remark]):
        self.stage = "fused"
        self._recording, self._remarks = recording, remarks
        self._texts: dict[str, str] = {}
        self._step: PipelineStep | None = None
        self._begun = 0.0

    def start(self, module: ir.Module) -> None:
        """Takes the module as it is for what the first pass begins with."""
        self._texts = texts_of(module)

    def before(self, step: PipelineStep, op: ir.Operation) -> None:
        """Begins an entry, unless the pass ran on another op just before."""
        if step is not self._step:
            said = len(self._remarks)
            options = str(step.pass_).removeprefix(step.pass_.name)[1:-1]
            self._recording.passes.append(RecordedPass(step.pass_.name, options, self.stage, remarks=(said, said)))
            self._step = step
        if step.pass_.name == "plan-memory":
            plan = plan_of(op)
            if plan is not None:
                self._recording.memory.append(plan)
        self._begun = time.perf_counter()

    def after(self, step: PipelineStep, op: ir.Operation) -> None:
        """Adds the time, and what is different."""
        entry = self._recording.passes[-1]
        entry.seconds += time.perf_counter() - self._begun
        entry.remarks = (entry.remarks[0], len(self._remarks))
        found = texts_of(op)
        if op.name == "builtin.module":
            entry.changes += filter(None, map(self._gone, sorted(self._texts.keys() - found.keys())))
            self._texts = {name: text for name, text in self._texts.items() if name in found}
        for name, text in found.items():
            before = self._texts.get(name, "")
            if text != before:
                differing = change(name, before, text)
                entry.changes += [] if differing is None else [differing]
                self._texts[name] = text
        if step.pass_.name in _KEPT_AFTER:
            keep(self._recording, _KEPT_AFTER[step.pass_.name], found)

    def _gone(self, name: str) -> FunctionChange | None:
        return change(name, self._texts[name], "")


def keep(recording: Recording, stage: str, texts: dict[str, str]) -> None:
    """Keeps the text of functions at a stage."""
    recording.texts.setdefault(stage, {}).update((name, _shortened(text)) for name, text in texts.items())


def texts_of(op: ir.Operation | ir.Module) -> dict[str, str]:
    """The functions in an op, or the one that it is, as text by name; values are named after nodes of the model."""
    return {symbol_name(function): _text(function) for function in functions_of(op)}


def functions_of(op: ir.Operation | ir.Module) -> list[ir.Operation]:
    """The functions with a body."""
    found = walk(op, "func.func", "llvm.func", "gpu.func", "spirv.func")
    return [function for function in found if len(function.regions) and len(function.regions[0].blocks)]


def _text(function: ir.Operation) -> str:
    return function.get_asm(use_local_scope=True, use_name_loc_as_prefix=True, large_elements_limit=_ELEMENTS)


def _shortened(text: str) -> str:
    lines = text.splitlines()
    if len(lines) <= _MOST_LINES:
        return text
    return "\n".join([*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines"])
