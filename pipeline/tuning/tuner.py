"""The tuner: gives kernels the schedules that are fastest on this machine, measured or kept from an earlier time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field

from pipeline import compile_cache, remarks, timing
from pipeline.analysis.flop_count import operations
from pipeline.ir.attributes import KERNEL
from pipeline.ir.schedule import DEFAULT, Schedule, set_schedule
from pipeline.mlir import callee, ir, symbol_name, walk
from pipeline.options import Options
from pipeline.shared_cache import Store
from pipeline.tuning.bench import Bench, Call, Choice
from pipeline.tuning.candidates import candidates
from pipeline.tuning.cpu_kind import cpu_kind
from pipeline.tuning.kernel_program import KernelProgram, kernel_program, why_not
from pipeline.tuning.measure import gain
from pipeline.tuning.measurement import Measurement, as_kept, kept, miss


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
    cache: Store | None
    measure: Callable[[Call, Call], float] = gain
    clock: Callable[[], float] = time.perf_counter
    complete: bool = True
    _bench: Bench = field(init=False)
    _deadline: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._bench = Bench(self.options, self.measure, self.clock)

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
        isa = self._bench.target.isa
        variants = candidates(kernel, isa.vector_bytes, isa.vector_registers)
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
            miss(Measurement(key, program, tuple(variants), (operations(kernel) or 0) * len(calls)))
            return False
        if is_new and self.cache is not None:
            self.cache.put(key, kept(choice))
        if choice.schedule != DEFAULT:
            set_schedule(kernel, choice.schedule)
        times = (
            "no other is faster" if choice.schedule == DEFAULT else f"{choice.gain:.2f} times as fast as the default"
        )
        remarks.passed("tune", kernel, f"{choice.schedule}: {times}{'' if is_new else ', as measured before'}")
        return True

    def _key(self, program: KernelProgram) -> str:
        how = [*self._bench.target.fingerprint(), *astuple(cpu_kind()), str(self.options.num_threads)]
        return compile_cache.key_of(f"schedule of a kernel\n{program.text}", self.options, how)

    def _kept(self, key: str) -> Choice | None:
        data = None if self.cache is None else self.cache.get(key)
        return None if data is None else as_kept(data)

    def _measured(self, program: KernelProgram, variants: Sequence[Schedule]) -> Choice | None:
        """The best of the variants and the default; None if time ran out before all were measured."""
        best = self._bench.best(program, variants, self._deadline)
        return None if best is None else self._bench.confirmed(program, best)


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
