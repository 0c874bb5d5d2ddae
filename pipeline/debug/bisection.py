"""Finds the pass that first changes the numbers of a program beyond rounding, or that crashes.

The modules after the passes on tensors are interpreted, by halves; the executable, with all passes behind these, is run
and compared with the interpretation. What is found is reduced to the ops that the pass goes wrong on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline import gc_pause, interrupts
from pipeline.debug.execution import compared
from pipeline.debug.extraction import Part
from pipeline.debug.finding import Finding
from pipeline.debug.judgement import FOLDED, RunResults, difference, tolerance_of
from pipeline.debug.lowering import Lowering
from pipeline.debug.program_call import ProgramCall, program_call
from pipeline.debug.reduction import judge_of, reduced
from pipeline.debug.slowness import SlowPass
from pipeline.debug.tracing import outcome
from pipeline.debug.trail import Snapshot, Trail, follow
from pipeline.mlir import ir
from pipeline.options import Options
from pipeline.targets import Target

#: Passes that round on purpose: what comes after them is compared with what they left.
ROUNDING = ("quantize-weights",)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Search:
    """One search.

    Attributes:
        say: is told what is being done.
    """

    called: ProgramCall
    options: Options
    target: Target
    say: Progress

    def run(self) -> Finding | None:
        """What is wrong; None if nothing is.

        Raises:
            UnknownOp: the interpreter does not know an op of the program.
        """
        trail = self._trail()
        found = self._wrong_pass(trail)
        if found is not None:
            return found
        if trail.failed is not None:
            return self._failed_pass(trail)
        return self._wrong_code(trail)

    def slow_pass(self) -> Finding | None:
        """The pass without which the code is faster; None if there is none."""
        return SlowPass(self.called, self.options, self._trail(), self.say).found()

    def _trail(self) -> Trail:
        self.say("running the passes")
        rules = self.options.fusion_rules or self.target.fusion_rules
        trail = follow(self.called.program, self.target, rules, self.options)
        self.say(f"{len(trail.passes)} passes, {len(trail.snapshots) - 1} of those on tensors changed the program")
        return trail

    @property
    def _context(self) -> ir.Context:
        return self.called.program.module.context

    def _outcome(self, snapshot: Snapshot) -> RunResults:
        return outcome(snapshot.module(self._context), self.called.call, sources=snapshot.sources)

    @cached_property
    def _tolerance(self) -> float:
        return tolerance_of(self.called.program.module, FOLDED)

    def _wrong_pass(self, trail: Trail) -> Finding | None:
        snapshots = trail.snapshots
        starts = [0] + [n for n, snapshot in enumerate(snapshots) if snapshot.name in ROUNDING]
        for start, end in zip(starts, [*starts[1:], len(snapshots)], strict=True):
            number = self._first_wrong(snapshots[start:end])
            if number is not None:
                return self._found(trail, snapshots[start + number - 1], snapshots[start + number])
        return None

    def _first_wrong(self, snapshots: Sequence[Snapshot]) -> int | None:
        """The number of a snapshot that differs from the first one while the one before does not, by halves."""
        reference = self._outcome(snapshots[0])

        def is_wrong(number: int) -> bool:
            self.say(f"interpreting the program after pass '{snapshots[number].name}'")
            return difference(reference, self._outcome(snapshots[number]), self._tolerance) is not None

        right, wrong = 0, len(snapshots) - 1
        if wrong == 0 or not is_wrong(wrong):
            return None
        while wrong - right > 1:
            middle = (right + wrong) // 2
            if is_wrong(middle):
                wrong = middle
            else:
                right = middle
        return wrong

    def _found(self, trail: Trail, before: Snapshot, wrong: Snapshot) -> Finding:
        self.say(f"pass '{wrong.name}' changes the numbers; reducing the program")
        if before.sources is not None:  # what has memory for its results is no program of its own
            before = trail.marked
        pipeline = trail.pipeline_between(before, wrong)
        judge = judge_of(pipeline, self._tolerance)
        part = reduced(Part(before.module(self._context), self.called.call), judge)
        verdict = judge(part)
        return Finding("wrong", wrong.name, pipeline, part, verdict.problem or "", verdict.expected, verdict.got)

    def _failed_pass(self, trail: Trail) -> Finding:
        assert trail.failed is not None
        name, pipeline = trail.passes[trail.failed]
        self.say(f"pass '{name}' fails; reducing the program")
        before = trail.snapshots[-1]
        if trail.kernels is not None:
            before, pipeline = trail.snapshots[trail.kernels], trail.pipeline_behind
        judge = judge_of(pipeline, 0.0, trail.failure)
        part = reduced(Part(before.module(self._context), self.called.call), judge)
        verdict = judge(part)
        problem = verdict.problem or trail.failure
        return Finding("failed", name, pipeline, part, problem, RunResults(), RunResults(failure=problem))

    def _wrong_code(self, trail: Trail) -> Finding | None:
        assert trail.code is not None
        self.say("running the executable")
        module = trail.marked.module(self._context)
        problem, expected, got = compared(self.called, trail.code, module, trail.stages)
        if problem is None:
            return None
        self.say(f"the code is wrong: {problem}; trying its kernels one by one")
        whole = Part(trail.snapshots[trail.kernels or 0].module(self._context), self.called.call)
        return Lowering(self.options, self.target, trail, self.say).finding(whole, problem, expected, got)


def bisect(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    options: Mapping[str, Any],
    *,
    slower: bool = False,
    say: Progress = lambda what: None,
) -> Finding | None:
    """See `pipeline.debug.bisect`; `say` is told of what is being done."""
    from pipeline.compiler import captured_source, target_for

    chosen = Options.create(options)
    target = target_for(chosen)
    with gc_pause.left(), interrupts.kept():
        source = captured_source(model, args, kwargs, dynamic_shapes, chosen)
        program = source.program(lambda stage, code: None)
        called = program_call(program, (args, kwargs or {}) if args is not None else source.example())
        search = Search(called, chosen, target, say)
        return search.slow_pass() if slower else search.run()
