"""What goes wrong behind the passes on tensors: which kernel does, compiled alone, and because of which pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pipeline.debug.execution import compared
from pipeline.debug.extraction import Part, extract, ops_to_keep, prepare_alone, without_prepare
from pipeline.debug.finding import Finding
from pipeline.debug.judgement import RunResults
from pipeline.debug.program_call import ProgramCall
from pipeline.debug.tracing import trace
from pipeline.debug.trail import Trail, in_child
from pipeline.errors import PipelineError
from pipeline.frontend.importer.mlir_text import from_mlir
from pipeline.mlir import callee, function, ir
from pipeline.options import Options
from pipeline.passmanager import registry
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.interface.code import Code
from pipeline.supervised import Lost
from pipeline.targets import Target

#: What such a finding names where no pass that may be left out is to blame.
BEHIND = "the lowering"


@dataclass(frozen=True)
class Lowering:
    """The way from kernels on tensors to results.

    Attributes:
        say: is told of what is tried.
    """

    options: Options
    target: Target
    trail: Trail
    say: Callable[[str], None]

    def finding(self, whole: Part, problem: str, expected: RunResults, got: RunResults) -> Finding:
        """The first kernel that is wrong where it is compiled alone; the whole program where none is."""
        for name, part in _kernels(whole):
            self.say(f"compiling {name} alone")
            words, wanted, came = self._compared(part, self.target)
            if words is not None:
                return self._found(self._blamed(part) or BEHIND, part, words, wanted, came)
        return self._found(BEHIND, whole, problem, expected, got)

    def _found(self, name: str, part: Part, problem: str, expected: RunResults, got: RunResults) -> Finding:
        return Finding("lowering", name, self.trail.pipeline_behind, part, problem, expected, got)

    def _blamed(self, part: Part) -> str | None:
        """The pass without which a kernel is right; None if there is none that may be left out."""
        behind = self.trail.passes[self.trail.kernel_passes :]
        names = [name for name in dict.fromkeys(name for name, _ in behind) if not registry.is_mandatory(name)]
        if not names or not self._is_right_without(part, names):
            return None
        return next((name for name in names if self._is_right_without(part, [name])), None)

    def _is_right_without(self, part: Part, names: list[str]) -> bool:
        from pipeline.compiler import target_for

        self.say(f"compiling it without {', '.join(names) if len(names) < 4 else f'{len(names)} passes'}")
        disabled = replace(self.options, disable=(*self.options.disable, *names))
        return self._compared(part, target_for(disabled))[0] is None

    def _compared(self, part: Part, target: Target) -> tuple[str | None, RunResults, RunResults]:
        """How the code of a part differs from its interpretation; nothing where it cannot be called alone."""
        try:
            program = from_mlir(part.module.operation.get_asm(enable_debug_info=True), "kernel", lambda *_: None)
        except PipelineError:  # it takes what code takes from code alone
            return None, RunResults(), RunResults()
        try:
            code = in_child(program.module.context, lambda: _compiled(program.module, target))
        except (Lost, PipelineError) as error:
            failed = RunResults(failure=f"it could not be compiled: {error}")
            return str(failed), RunResults(), failed
        return compared(ProgramCall(program, part.positional(), {}), code, program.module)


def _compiled(module: ir.Module, target: Target) -> Code | DeviceCode:
    with module.context, ir.Location.unknown():
        return target.compile(module, lambda *_: None)


def _kernels(whole: Part) -> Iterator[tuple[str, Part]]:
    """The kernels that @main and @prepare call, and loops, each as a program of its own."""
    entries = [prepare_alone(whole), without_prepare(whole, trace(whole.module, whole.call).prepared)]
    seen: set[str] = set()
    for entry in filter(None, entries):
        values = trace(entry.module, entry.call).values
        ops = [op.operation for op in function(entry.module, "main").regions[0].blocks[0].operations]
        for number in ops_to_keep(entry.module):
            name = _name(ops[number])
            if name is not None and name not in seen:
                seen.add(name)
                yield name, extract(entry, [number], values)


def _name(op: ir.Operation) -> str | None:
    """What to call an op that is tried; None if it is too small for that."""
    if op.name == "func.call":
        return f"kernel @{callee(op)}"
    return f"{op.name} of {op.location}" if len(op.regions) and op.name.startswith("scf.") else None
