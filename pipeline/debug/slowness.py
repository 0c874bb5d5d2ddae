"""Which pass makes the code slower: the one without which it is faster.

Passes of users come first; of the others that may be left out, halves are left out, and the half goes on without which
the code gains more. What both run is timed in turns, in a child, on the call that is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pipeline.debug.extraction import Part
from pipeline.debug.finding import Finding
from pipeline.debug.judgement import RunResults
from pipeline.debug.program_call import ProgramCall
from pipeline.debug.trail import Trail, in_child
from pipeline.errors import PipelineError
from pipeline.options import Options
from pipeline.passmanager import registry
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.interface.code import Code
from pipeline.supervised import Lost
from pipeline.tuning.measure import gain

#: How many times as fast the code has to be without a pass for that to be to blame.
_LEAST = 1.1

#: How many kernels are named.
_KERNELS = 3


@dataclass(frozen=True)
class SlowPass:
    """The search for it, in what a compilation left.

    Attributes:
        say: is told of what is tried.
    """

    called: ProgramCall
    options: Options
    trail: Trail
    say: Callable[[str], None]

    def found(self) -> Finding | None:
        """The pass, with the program before it; None if no pass costs that much."""
        if self.trail.code is None:
            raise PipelineError(f"bisect: no code comes out: {self.trail.failure}; look for that first")
        names = list(dict.fromkeys(name for name, _ in self.trail.passes if not registry.is_mandatory(name)))
        theirs = [name for name in names if not _is_of_the_house(name)]
        for some in filter(None, (theirs, [name for name in names if name not in theirs])):
            name, times = self._slowest(some)
            if times >= _LEAST:
                return self._finding(name, times)
        return None

    def _slowest(self, names: Sequence[str]) -> tuple[str, float]:
        """One of some passes, by halves, and how many times as fast the code is without it."""
        times = self._gain_without(names) if len(names) == 1 else 0.0
        while len(names) > 1:
            halves = names[: len(names) // 2], names[len(names) // 2 :]
            gains = [self._gain_without(half) for half in halves]
            names, times = max(zip(halves, gains, strict=True), key=lambda pair: pair[1])
        return names[0], times

    def _gain_without(self, names: Sequence[str]) -> float:
        """How many times as fast the code is without some passes; 0 where there is none without them."""
        self.say(f"compiling it without {', '.join(names) if len(names) < 4 else f'{len(names)} passes'}")
        with_them = self.trail.code
        assert with_them is not None

        def work() -> float:
            executables = [self.called.executable(code) for code in (with_them, self._code(names))]
            return gain(*(self.called.timed(executable) for executable in executables))

        try:
            times = in_child(self.called.program.module.context, work)
        except (Lost, PipelineError):  # the others need these passes
            return 0.0
        self.say(f"it runs {times:.2f} times as fast")
        return times

    def _code(self, left_out: Sequence[str], profile: bool = False) -> Code | DeviceCode:
        """The code without some passes; uses up the program, in a child."""
        from pipeline.compiler import target_for
        from pipeline.lowering import lower

        options = replace(self.options, disable=(*self.options.disable, *left_out), profile=profile)
        target = target_for(options)
        rules = options.fusion_rules or target.fusion_rules
        return lower(self.called.program, target, rules, options, lambda stage, module: None)

    def _slower_kernels(self, name: str) -> tuple[str, ...]:
        """The kernels that take the most time more with a pass; none for devices, whose kernels are not timed."""
        if isinstance(self.trail.code, DeviceCode):
            return ()
        self.say("timing its kernels")
        times = [self._times(left_out) for left_out in ((), (name,))]
        more = {kernel: seconds - times[1].get(kernel, 0.0) for kernel, seconds in times[0].items()}
        most = sorted(more, key=lambda kernel: -more[kernel])[:_KERNELS]
        return tuple(kernel for kernel in most if more[kernel] > 0)

    def _times(self, left_out: Sequence[str]) -> dict[str, float]:
        """The seconds that each kernel takes in a call."""

        def work() -> dict[str, float]:
            executable = self.called.executable(self._code(left_out, profile=True))
            found: dict[str, float] = {}
            for row in executable.profile(*self.called.args, **self.called.kwargs).rows:
                found[row.name] = found.get(row.name, 0.0) + row.seconds
            return found

        return in_child(self.called.program.module.context, work)

    def _finding(self, name: str, times: float) -> Finding:
        changed = [number for number, snapshot in enumerate(self.trail.snapshots) if snapshot.name == name]
        before = self.trail.snapshots[changed[0] - 1 if changed else self.trail.kernels or 0]
        pipeline = next(pipeline for known, pipeline in self.trail.passes if known == name)
        module = before.module(self.called.program.module.context)
        part = Part(module, self.called.call, self._slower_kernels(name))
        problem = f"the code runs {times:.2f} times as fast without it"
        return Finding("slower", name, pipeline, part, problem, RunResults(), RunResults())


def _is_of_the_house(name: str) -> bool:
    """Whether a pass is ours or MLIR's, not a plugin's."""
    owned = registry.passes().get(name)
    return owned is None or owned.__module__.startswith("pipeline.")
