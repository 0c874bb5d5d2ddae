"""Textual pass pipelines that mix our passes with MLIR's, in the syntax of mlir-opt.

    builtin.module(func.func(canonicalize,fold-x{a=1 b=2}),cse)

or a bare list, `canonicalize,fold-x`, which stands for one inside `builtin.module(...)`. Parsing checks names, options
and nesting, so that a wrong pipeline fails before anything runs and MLIR, which may abort the process, never sees it.

A pass nests itself: `builtin.module(fold-x)` runs a pass of ours that is anchored on `func.func` on every function in
the module, at any depth, and one of MLIR's that is restricted to `func.func` on every function directly in the module.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, cast, get_args

from pipeline import remarks, timing
from pipeline.dialects.fusion import OPS
from pipeline.errors import CompileError, OptionError
from pipeline.mlir import Verification, attributes_remembered, ir, run_pipeline
from pipeline.mlir import verify as check
from pipeline.passmanager import registry
from pipeline.passmanager.parser import ROOT, PipelineParser
from pipeline.passmanager.pass_runner import ANY, Instrumentation, MlirPass, PipelineStep, run_watched

#: The passes of all pipelines that run, where somebody wants to know.
_record: contextvars.ContextVar[list[PipelineStep] | None] = contextvars.ContextVar("pipeline_record", default=None)


@contextlib.contextmanager
def recorded() -> Iterator[list[PipelineStep]]:
    """Collects the passes of all pipelines that run inside of the `with` block, but for those of blocks inside."""
    steps: list[PipelineStep] = []
    token = _record.set(steps)
    try:
        yield steps
    finally:
        _record.reset(token)


#: Who looks at all pipelines that run.
_watchers: contextvars.ContextVar[tuple[Instrumentation, ...]] = contextvars.ContextVar("pipeline_watchers", default=())


@contextlib.contextmanager
def watched(*watchers: Instrumentation) -> Iterator[None]:
    """Has these, and nobody else, look at all pipelines that run inside of the `with` block (in this thread)."""
    token = _watchers.set(watchers)
    try:
        yield
    finally:
        _watchers.reset(token)


#: Pipelines by their texts: every compilation runs the same ones. Of more, all are forgotten.
_parsed: dict[str, tuple[PipelineStep, ...]] = {}
_MOST_PARSED = 500


@dataclass(frozen=True)
class PassPipeline:
    """A checked pass pipeline, ready to run on modules; `str` gives its text again."""

    steps: tuple[PipelineStep, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The pipeline that `text` describes; raises `OptionError` for anything wrong with it."""
        steps = _parsed.get(text)
        if steps is None or not all(map(_is_registered, steps)):
            if len(_parsed) >= _MOST_PARSED:
                _parsed.clear()
            steps = _parsed[text] = tuple(PipelineParser(text).pipeline())
        return cls(steps)

    def __str__(self) -> str:
        return _nested(list(self.steps))

    def run(
        self,
        module: ir.Module | ir.Operation,
        instrumentation: Sequence[Instrumentation] = (),
        *,
        disable: frozenset[str] = frozenset(),
        verify: Verification | None = None,
    ) -> None:
        """Runs the passes on `module` in order.

        Without instrumentation neighbouring passes of MLIR run as one PassManager; with it each runs by itself, op by
        op, so that every call can name the pass and the op. Passes in `disable` are skipped, with a remark. The IR is
        verified after each pass, or at the end and after each pass of a plugin, which is quicker; by default as the
        environment variable `PIPELINE_VERIFY` says, else at the end.

        Raises `CompileError` naming the pass if one fails, `OptionError` for an unknown name in `disable` or a nesting
        in something that is no op.
        """
        verify = verify or usual_verification()
        root = module.operation
        steps = self._enabled(root, disable)
        _check_anchors(steps, root.context)
        if (record := _record.get()) is not None:
            record.extend(steps)
        instrumentation = (*instrumentation, *_watchers.get())
        with attributes_remembered():
            if instrumentation:
                _run_watched(root, steps, instrumentation, verify)
            else:
                _run(root, steps, verify)
                if verify == "end":
                    self._verify_end(root)

    def _verify_end(self, root: ir.Operation) -> None:
        try:
            check(root)
        except CompileError as error:
            names = ", ".join(dict.fromkeys(step.pass_.name for step in self.steps))
            reason = f"one of the passes {names} left invalid IR (PIPELINE_VERIFY=each finds out which): {error}"
            raise CompileError(reason, error.diagnostics) from None

    def _enabled(self, root: ir.Operation, disable: frozenset[str]) -> list[PipelineStep]:
        for name in disable:
            if not registry.is_pass(name):
                raise registry.unknown_pass(name)
        for step in self.steps:
            if step.pass_.name in disable:
                remarks.missed(step.pass_.name, root, "the pass is disabled")
        return [step for step in self.steps if step.pass_.name not in disable]


def _run_watched(
    root: ir.Operation, steps: Sequence[PipelineStep], instrumentation: Sequence[Instrumentation], verify: Verification
) -> None:
    for step in steps:
        with timing.stage(step.pass_.name, is_pass=True):
            for op in step.targets(root):
                run_watched(step, op, instrumentation, verify != "never")


def _run(root: ir.Operation, steps: Sequence[PipelineStep], verify: Verification) -> None:
    for is_mlir, group in itertools.groupby(steps, lambda step: isinstance(step.pass_, MlirPass)):
        if is_mlir:
            steps_of_mlir = list(group)
            with timing.stage(",".join(dict.fromkeys(step.pass_.name for step in steps_of_mlir)), is_pass=True):
                run_pipeline(root, _nested(steps_of_mlir), verify="each" if verify == "each" else "never")
            continue
        for step in group:
            verified = verify == "each" or (verify == "end" and not _is_of_the_house(step))
            with timing.stage(step.pass_.name, is_pass=True):
                for op in step.targets(root):
                    step.run(op, verified)


def usual_verification() -> Verification:
    """When IR is verified if nobody says: what the environment variable `PIPELINE_VERIFY` says, else at the end."""
    said = os.environ.get("PIPELINE_VERIFY") or "end"
    if said not in get_args(Verification):
        raise OptionError(f"PIPELINE_VERIFY is {said!r}, expected one of {', '.join(get_args(Verification))}")
    return cast(Verification, said)


def _is_registered(step: PipelineStep) -> bool:
    """Whether a pass is still what its name stands for: plugins come and go."""
    return isinstance(step.pass_, MlirPass) or registry.find(step.pass_.name) is type(step.pass_)


def _is_of_the_house(step: PipelineStep) -> bool:
    """Whether a pass is ours, not a plugin's: those are tested with the verifier after each pass."""
    return type(step.pass_).__module__.startswith("pipeline.")


def _nested(steps: Sequence[PipelineStep], depth: int = 0) -> str:
    """The text of `steps`, which share the first `depth + 1` of their anchors."""
    elements = []
    for anchor, group in itertools.groupby(steps, lambda step: (step.anchors[depth + 1 :] or (None,))[0]):
        if anchor:
            elements.append(_nested(list(group), depth + 1))
        else:
            elements.extend(str(step.pass_) for step in group)
    anchor = steps[0].anchors[depth] if steps else ROOT
    return f"{anchor}({','.join(elements)})"


def _check_anchors(steps: Sequence[PipelineStep], ctx: ir.Context) -> None:
    for anchor in sorted({anchor for step in steps for anchor in step.anchors} - {ANY}):
        if anchor not in OPS and not ctx.is_registered_operation(anchor):
            raise OptionError(f"pass pipeline: nested in '{anchor}', which is no op")
