"""Compiles a model as far as MLIR goes, and writes down what happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields, replace
from typing import Any

from pipeline.frontend.node_places import told
from pipeline.fusion_rules.rules import FusionRules
from pipeline.lowering import lower
from pipeline.mlir import ir
from pipeline.options import Options
from pipeline.passmanager.pass_pipeline import watched
from pipeline.program import ProgramSource
from pipeline.remarks import collect
from pipeline.report.hierarchy import common_path
from pipeline.report.recorder.graph import Groups, graph_of
from pipeline.report.recorder.pass_watch import PassWatch, keep, texts_of
from pipeline.report.recording import ModelNode, Recording
from pipeline.targets import Target
from pipeline.tuning.tuner import Tuner

#: What the passes after a stage work towards.
_NEXT = {"linalg": "fused", "fused": "kernels", "kernels": "code"}

_LAST = "llvm"

#: Options that change nothing about the code.
_SILENT = ("cache", "verbose")


class _MlirEnds(Exception):
    """Machine code is next, which nobody looks at here."""


def record(
    source: ProgramSource,
    target: Target,
    rules: str | FusionRules,
    options: Options,
    make_tuner: Callable[[Options], Tuner | None],
) -> Recording:
    """Compiles once more; what was measured by a tuner is used, and nothing is measured.

    Raises:
        CompileError: a pass fails, which it did not the time before.
    """
    if options.tune is not None:
        options = replace(options, tune=0)
    recording = Recording(options=_chosen(options))
    with collect() as remarks, told() as nodes:
        watch = PassWatch(recording, remarks)
        stages = _StageWatch(recording, watch)
        program = source.program(stages)
        if not recording.imported.boxes:  # what was captured once gives the texts of its stages
            stages("linalg", program.module)
        watch.start(program.module)
        try:
            with watched(watch):
                lower(program, target, rules, options, stages, make_tuner(options))
        except _MlirEnds:
            pass
    recording.remarks = [asdict(remark) | {"change": remark.change} for remark in remarks]
    for node in nodes:
        recording.nodes[node.name] = _merged(recording.nodes.get(node.name), ModelNode(node.path, node.op, node.source))
        recording.classes.update(node.modules)
    return recording


def _merged(known: ModelNode | None, new: ModelNode) -> ModelNode:
    """What nodes of one name in several branches have in common."""
    if known is None or known == new:
        return new
    same = (new.op if known.op == new.op else "", new.source if known.source == new.source else None)
    return ModelNode(common_path([known.path, new.path]), *same)


class _StageWatch:
    """Is told of each stage: keeps its text, and what it is as a graph."""

    def __init__(self, recording: Recording, watch: PassWatch):
        self._recording, self._watch = recording, watch
        self._groups: Groups | None = None

    def __call__(self, stage: str, code: ir.Module | str) -> None:
        """Is called with the module, or with its text where there is no module."""
        if isinstance(code, str):
            if stage == "torch":
                keep(self._recording, stage, {"main": code})
            return
        self._watch.stage = _NEXT.get(stage, self._watch.stage)
        keep(self._recording, stage, texts_of(code))
        if stage == "linalg":
            self._recording.imported = graph_of(code)
        elif stage == "fused":
            self._groups = Groups(code)
        elif stage == "kernels":
            self._recording.compiled = graph_of(code, self._groups)
        elif stage == _LAST:
            raise _MlirEnds


def _chosen(options: Options) -> dict[str, str]:
    """The options that are not as they are by default."""
    usual: Any = Options()
    values = {field.name: getattr(options, field.name) for field in fields(options)}
    chosen = {name: value for name, value in values.items() if value != getattr(usual, name) and name not in _SILENT}
    return {name: "a FusionRules" if isinstance(value, FusionRules) else str(value) for name, value in chosen.items()}
