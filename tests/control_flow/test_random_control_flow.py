"""Random programs with branches, loops and writes in place: fused = unfused = eager, bit by bit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from script_programs import LARGE, SMALL, ScriptProgram, Size, script, script_programs

from pipeline.compiler import compile_source, target_for
from pipeline.errors import CaptureError, PipelineError
from pipeline.frontend.sources import exported_source
from pipeline.mlir import context, ir
from pipeline.options import Options
from pipeline.program import Dump, Program, Source
from pipeline.runtime.executable import Executable

#: How many there are of each size. A large one takes a second of a processor, a small one a quarter.
COUNTS = {LARGE: 30, SMALL: 270}

#: How many are captured and compiled as one, which is cheaper than one by one. A refusal takes that apart again.
TOGETHER = {LARGE: 1, SMALL: 10}

#: How many a test looks at, so that several processes can share the work.
BATCH = {LARGE: 10, SMALL: 30}

#: What makes fewer and larger kernels.
FUSION = ("fuse-elementwise", "form-groups")


def sample(size: Size) -> list[ScriptProgram]:
    """The same programs every time, each once."""
    found: dict[ScriptProgram, None] = {}

    @settings(
        max_examples=2 * COUNTS[size],
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(script_programs(size))
    def collect(program: ScriptProgram) -> None:
        found.setdefault(program)

    collect()
    return list(found)[: COUNTS[size]]


@pytest.fixture(scope="module")
def programs() -> dict[Size, list[ScriptProgram]]:
    return {size: sample(size) for size in COUNTS}


@dataclass(frozen=True)
class Imported(Source):
    """A program that was imported before, as the text of its module."""

    imported: Program
    text: str

    def program(self, dump: Dump) -> Program:
        return replace(self.imported, module=ir.Module.parse(self.text, context()))

    def fingerprint(self) -> str | None:
        return None

    def tensors(self) -> dict[str, torch.Tensor]:
        return dict(self.imported.weights)


def compiled(programs: list[ScriptProgram], module: torch.jit.ScriptModule) -> list[Executable]:
    """The programs fused and not; captured once, which takes most of the time."""
    arguments = tuple(argument for program in programs for argument in program.arguments())
    imported = exported_source(module, arguments, {}, None, "export").program(lambda *_: None)
    source = Imported(imported, imported.module.operation.get_asm(enable_debug_info=True))
    choices = [Options.create({"disable": disabled}) for disabled in ((), FUSION)]
    return [compile_source(source, options, target_for(options)) for options in choices]


def outcomes(programs: list[ScriptProgram]) -> list[str]:
    """For each program `right`, `refused` (one clear error before anything runs), or what is wrong with it."""
    module = script(programs)
    try:
        executables = compiled(programs, module)
    except PipelineError as error:
        if len(programs) > 1:
            half = len(programs) // 2
            return [*outcomes(programs[:half]), *outcomes(programs[half:])]
        clear = isinstance(error, CaptureError) and "clone it before" in str(error)
        return ["refused" if clear else f"{programs[0].source}\n{error}"]
    problems = [
        differences(programs, module, executable, name, seed)
        for seed in range(3)
        for name, executable in zip(("fused", "unfused"), executables, strict=True)
    ]
    return ["\n".join(filter(None, found)) or "right" for found in zip(*problems, strict=True)]


def differences(
    programs: list[ScriptProgram], module: torch.jit.ScriptModule, executable: Executable, name: str, seed: int
) -> list[str]:
    """For each program what differs from eager, in results, arguments or the buffer; empty if nothing does."""
    drawn = [replace(program, seed=program.seed + seed) for program in programs]
    for buffer in module.buffers():
        buffer.zero_()
    given = [program.arguments() for program in drawn]
    results = executable(*(argument for arguments in given for argument in arguments))
    found = []
    for program, arguments, result, total in zip(drawn, given, results, module.buffers(), strict=True):
        eager, theirs = program.python(), program.arguments()
        expected = (*eager(*theirs), *theirs, eager.total)
        same = [torch.equal(*pair) for pair in zip((*result, *arguments, total), expected, strict=True)]
        found.append("" if all(same) else f"{name}, seed {program.seed}: {same}\n{program.source}")
    return found


@pytest.mark.parametrize(
    "size, first",
    [
        pytest.param(size, first, id=f"{kind}-{first}")
        for size, kind in ((LARGE, "large"), (SMALL, "small"))
        for first in range(0, COUNTS[size], BATCH[size])
    ],
)
def test_programs_give_what_eager_gives(programs, size, first):
    batch = programs[size][first : first + BATCH[size]]
    found: list[str] = []
    with torch.no_grad():
        for start in range(0, len(batch), TOGETHER[size]):
            found += outcomes(batch[start : start + TOGETHER[size]])
    wrong = [outcome for outcome in found if outcome not in ("right", "refused")]
    assert not wrong, "\n".join(wrong)
    assert found.count("right") >= 0.6 * len(batch)


def test_programs_are_many_and_not_trivial(programs):
    assert {size: len(found) for size, found in programs.items()} == COUNTS
    for size, found in programs.items():
        for word in ("if bool", "while", "for", "break", "else", "_(", "int(n)", "self.total"):
            assert sum(word in program.source for program in found) >= COUNTS[size] / 40, word
