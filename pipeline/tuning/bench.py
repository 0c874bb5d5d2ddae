"""A bench for kernels: compiles one alone, with one schedule or another, and times it on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline import remarks
from pipeline.errors import PipelineError
from pipeline.ir.attributes import KERNEL
from pipeline.ir.schedule import DEFAULT, Schedule, set_schedule
from pipeline.mlir import context, ir, parse, walk
from pipeline.options import Options
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.runtime.executable import Executable
from pipeline.runtime.weights.weight_source import FixedWeights
from pipeline.targets.common.target import CodeForm
from pipeline.targets.cpu.target import CpuTarget
from pipeline.tuning.kernel_program import KernelProgram
from pipeline.tuning.measure import agree, gain

#: Less than this is not worth another schedule than the default: it may be the machine.
_MARGIN = 1.03

Call = Callable[[], Any]


@dataclass(frozen=True)
class Choice:
    """A schedule, and how many times as fast as the default it was."""

    schedule: Schedule = DEFAULT
    gain: float = 1.0


@dataclass
class Bench:
    """Finds the best schedule of one kernel after the other.

    Attributes:
        options: of the compilation.
        measure: how many times as fast the second of two calls is as the first.
        clock: the time in seconds.
    """

    options: Options
    measure: Callable[[Call, Call], float] = gain
    clock: Callable[[], float] = time.perf_counter
    target: CpuTarget = field(init=False)
    _context: ir.Context = field(init=False)
    _program: KernelProgram | None = field(init=False, default=None)
    _compiled: dict[Schedule, _Variant] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        parallel, rounds = self.options.num_threads != 1, self.options.precision == "bf16"
        form = CodeForm(parallel=parallel, rounds=rounds)
        self.target = CpuTarget(self.options.cpu, frozenset(self.options.disable), form)
        self._context = context()

    def best(self, program: KernelProgram, variants: Sequence[Schedule], deadline: float) -> Choice | None:
        """The best of the variants and the default; None if the clock reached the deadline before all were measured."""
        if self.clock() >= deadline:
            return None
        default = self._variant(program, DEFAULT)
        if default is None:
            return Choice()
        self._program, self._compiled = program, {DEFAULT: default}
        expected, seen = default.results(), {default.code}
        best = Choice()
        for schedule in variants:
            if self.clock() >= deadline:
                return None
            variant = self._variant(program, schedule)
            if variant is None or variant.code in seen:
                continue
            seen.add(variant.code)
            if not agree(variant.results(), expected):
                continue
            faster = self.measure(default.call, variant.call)
            if faster > max(best.gain, _MARGIN):
                best = Choice(schedule, faster)
                self._compiled = {DEFAULT: default, schedule: variant}
        return best

    def confirmed(self, program: KernelProgram, choice: Choice) -> Choice:
        """The choice if it is faster once more, by as much as it is both times; else the default."""
        if choice.schedule == DEFAULT:
            return choice
        default, best = self._variant(program, DEFAULT), self._variant(program, choice.schedule)
        if default is None or best is None:
            return Choice()
        again = min(choice.gain, self.measure(default.call, best.call))
        return replace(choice, gain=again) if again > _MARGIN else Choice()

    def _variant(self, program: KernelProgram, schedule: Schedule) -> _Variant | None:
        """The kernel with a schedule; None if that cannot be compiled."""
        known = self._compiled.get(schedule) if program is self._program else None
        return known or self._compile(program, schedule)

    def _compile(self, program: KernelProgram, schedule: Schedule) -> _Variant | None:
        with remarks.dropped(), self._context, ir.Location.unknown():
            module = parse(program.text, self._context, "kernel")
            for function in walk(module, "func.func"):
                if KERNEL in function.attributes:
                    set_schedule(function, schedule)
            try:
                PassPipeline.parse(self.target.kernel_passes()).run(module, disable=self.target.disable)
                code = self.target.compile(module, lambda stage, text: None)
            except PipelineError:
                return None
        threads = self.options.num_threads
        executable = Executable(code, program.signature, FixedWeights(program.weights), num_threads=threads)
        return _Variant(executable, program.arguments, code.objects)


class _Variant:
    """A kernel with a schedule, on its arguments. It writes to the same memory in every call.

    Attributes:
        code: equal for schedules that come to the same.
    """

    def __init__(self, executable: Executable, arguments: Sequence[np.ndarray], code: tuple[bytes, ...]):
        self.code = code
        self._executable = executable
        self._arguments = arguments
        found = executable(*arguments)
        self._single = isinstance(found, np.ndarray)
        self._out = found

    def call(self) -> None:
        """Runs it."""
        self._executable(*self._arguments, out=self._out)

    def results(self) -> list[np.ndarray]:
        """What it returns, copied."""
        self.call()
        return [result.copy() for result in ([self._out] if self._single else self._out)]
