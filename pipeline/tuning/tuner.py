"""The tuner: gives kernels the schedules that are fastest on this machine, measured or kept from an earlier time."""

from __future__ import annotations

import contextlib
import functools
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import compile_cache, remarks, timing
from pipeline.analysis.flop_count import operations
from pipeline.disk_cache import DiskCache
from pipeline.errors import PipelineError
from pipeline.ir.attributes import KERNEL
from pipeline.ir.schedule import DEFAULT, Schedule, set_schedule
from pipeline.llvm import host_cpu
from pipeline.mlir import callee, context, ir, parse, symbol_name, walk
from pipeline.options import Options
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.runtime.executable import Executable
from pipeline.runtime.weights.weight_source import FixedWeights
from pipeline.targets.common.target import CodeForm
from pipeline.targets.cpu.target import CpuTarget
from pipeline.tuning.candidates import candidates
from pipeline.tuning.kernel_program import KernelProgram, kernel_program, why_not
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
class Tuner:
    """Chooses the schedules of a module's kernels.

    Attributes:
        options: of the compilation.
        seconds: how long it may take to compile and measure variants; with 0 only what is kept is used.
        cache: where choices are kept; None for nowhere.
        measure: how many times as fast the second of two calls is as the first.
        clock: the time in seconds.
        complete: whether every kernel has a choice; set by `run`.
    """

    options: Options
    seconds: float
    cache: DiskCache | None
    measure: Callable[[Call, Call], float] = gain
    clock: Callable[[], float] = time.perf_counter
    complete: bool = True
    _target: CpuTarget = field(init=False)
    _context: ir.Context = field(init=False)
    _deadline: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        parallel, rounds = self.options.num_threads != 1, self.options.precision == "bf16"
        form = CodeForm(parallel=parallel, rounds=rounds)
        self._target = CpuTarget(self.options.cpu, frozenset(self.options.disable), form)
        self._context = context()

    def run(self, module: ir.Module) -> None:
        """Gives the kernels of a module of @main and kernels their schedules."""
        self._deadline = self.clock() + self.seconds
        calls = _calls(module)
        waiting = 0
        with timing.stage("tune"):
            for kernel in _heaviest_first(module, calls):
                name = symbol_name(kernel)
                waiting += not self._choose(kernel, calls[name])
        self.complete = not waiting
        if waiting:
            reason = f"{waiting} kernels have the default schedule: no time was left to measure them"
            remarks.note("tune", "missed", "builtin.module", reason)

    def _choose(self, kernel: ir.Operation, calls: Sequence[ir.Operation]) -> bool:
        """Gives a kernel its schedule; False if there was no time to find it."""
        variants = candidates(kernel, self._target.isa.vector_bytes, self._target.isa.vector_registers)
        if not variants:
            return True
        reason = why_not(kernel)
        if reason is not None:
            remarks.missed("tune", kernel, f"not measured: {reason}")
            return True
        program = kernel_program(kernel, calls)
        key = self._key(program)
        choice = self._kept(key)
        is_new = choice is None
        if choice is None:
            choice = self._measured(program, variants)
        if choice is None:
            return False
        if is_new and self.cache is not None:
            kept = {"schedule": choice.schedule.choices, "gain": choice.gain}
            self.cache.put(key, json.dumps(kept).encode())
        if choice.schedule != DEFAULT:
            set_schedule(kernel, choice.schedule)
        times = (
            "no other is faster" if choice.schedule == DEFAULT else f"{choice.gain:.2f} times as fast as the default"
        )
        remarks.passed("tune", kernel, f"{choice.schedule}: {times}{'' if is_new else ', as measured before'}")
        return True

    def _key(self, program: KernelProgram) -> str:
        how = [*self._target.fingerprint(), *host_cpu(), _model(), str(self.options.num_threads)]
        return compile_cache.key_of(f"schedule of a kernel\n{program.text}", self.options, how)

    def _kept(self, key: str) -> Choice | None:
        data = None if self.cache is None else self.cache.get(key)
        if data is None:
            return None
        kept = json.loads(data)
        return Choice(Schedule(**kept["schedule"]), kept["gain"])

    def _measured(self, program: KernelProgram, variants: Sequence[Schedule]) -> Choice | None:
        """The best of the variants and the default; None if time ran out before all were measured."""
        if self.clock() >= self._deadline:
            return None
        default = self._compiled(program, DEFAULT)
        if default is None:
            return Choice()
        expected, seen = default.results(), {default.code}
        best, best_choice = default, Choice()
        for schedule in variants:
            if self.clock() >= self._deadline:
                return None
            variant = self._compiled(program, schedule)
            if variant is None or variant.code in seen:
                continue
            seen.add(variant.code)
            if not agree(variant.results(), expected):
                continue
            faster = self.measure(default.call, variant.call)
            if faster > max(best_choice.gain, _MARGIN):
                best, best_choice = variant, Choice(schedule, faster)
        return self._confirmed(default, best, best_choice)

    def _confirmed(self, default: _Variant, best: _Variant, choice: Choice) -> Choice:
        """The choice if it is faster once more, by as much as it is both times; else the default."""
        if best is default:
            return choice
        again = min(choice.gain, self.measure(default.call, best.call))
        return replace(choice, gain=again) if again > _MARGIN else Choice()

    def _compiled(self, program: KernelProgram, schedule: Schedule) -> _Variant | None:
        """The kernel with a schedule; None if that cannot be compiled."""
        with remarks.dropped(), self._context, ir.Location.unknown():
            module = parse(program.text, self._context, "kernel")
            for function in walk(module, "func.func"):
                if KERNEL in function.attributes:
                    set_schedule(function, schedule)
            try:
                PassPipeline.parse(self._target.kernel_passes()).run(module, disable=self._target.disable)
                code = self._target.compile(module, lambda stage, text: None)
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


def _calls(module: ir.Module) -> dict[str, list[ir.Operation]]:
    """The calls of each function, outside of @prepare, which runs once."""
    found: dict[str, list[ir.Operation]] = {}
    for function in walk(module, "func.func"):
        if symbol_name(function) != "prepare":
            for call in walk(function, "func.call"):
                found.setdefault(callee(call), []).append(call)
    return found


def _heaviest_first(module: ir.Module, calls: dict[str, list[ir.Operation]]) -> list[ir.Operation]:
    """The kernels that are called, by the operations of all of their calls."""
    kernels = []
    for function in walk(module, "func.func"):
        name = symbol_name(function)
        if KERNEL in function.attributes and name in calls:
            kernels.append(((operations(function) or 0) * len(calls[name]), function))
    return [kernel for _, kernel in sorted(kernels, key=lambda pair: -pair[0])]


@functools.cache
def _model() -> str:
    """What the system calls the processor: LLVM's name says too little."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((line for line in lines if line.startswith("model name")), platform.processor())
    return platform.processor()
