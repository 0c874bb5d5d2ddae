"""Random programs with branches, loops and writes in place: fused = unfused = eager, bit by bit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from script_programs import ScriptProgram, script_programs

from pipeline.compiler import compile_source, target_for
from pipeline.errors import CaptureError
from pipeline.frontend.sources import exported_source
from pipeline.mlir import context, ir
from pipeline.options import Options
from pipeline.program import Dump, Program, Source
from pipeline.runtime.executable import Executable

#: How many; it takes a second for each.
COUNT = 40

#: How many there are of each batch, so that several processes can share the work.
BATCH = 20

#: What makes fewer and larger kernels.
FUSION = ("fuse-elementwise", "form-groups")


def sample(count: int) -> list[ScriptProgram]:
    """The same programs every time, each once."""
    found: dict[ScriptProgram, None] = {}

    @settings(
        max_examples=2 * count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(script_programs())
    def collect(program: ScriptProgram) -> None:
        found.setdefault(program)

    collect()
    return list(found)[:count]


@pytest.fixture(scope="module")
def programs() -> list[ScriptProgram]:
    return sample(COUNT)


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


def compiled(program: ScriptProgram, script: torch.jit.ScriptModule) -> list[Executable]:
    """The program fused and not; captured once, which takes most of the time."""
    imported = exported_source(script, program.arguments(), {}, None, "export").program(lambda *_: None)
    source = Imported(imported, imported.module.operation.get_asm(enable_debug_info=True))
    choices = [Options.create({"disable": disabled}) for disabled in ((), FUSION)]
    return [compile_source(source, options, target_for(options)) for options in choices]


def compare(program: ScriptProgram) -> str:
    """`right`, or `refused` if there is one clear error before anything runs; fails where something differs."""
    script = program.script()
    try:
        executables = compiled(program, script)
    except CaptureError as error:
        assert "clone it before" in str(error), f"{program.source}\n{error}"
        return "refused"
    for seed in range(3):
        drawn = replace(program, seed=program.seed + seed)
        eager, theirs = program.python(), drawn.arguments()
        expected = (*eager(*theirs), *theirs, eager.total)
        for name, executable in zip(("fused", "unfused"), executables, strict=True):
            script.total.zero_()
            given = drawn.arguments()
            got = (*executable(*given), *given, script.total)
            same = [torch.equal(one, other) for one, other in zip(got, expected, strict=True)]
            assert all(same), f"{name}, seed {drawn.seed}: {same}\n{program.source}"
    return "right"


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_programs_give_what_eager_gives(programs, first):
    with torch.no_grad():
        outcomes = Counter(map(compare, programs[first : first + BATCH]))
    assert outcomes["right"] >= 0.6 * BATCH, outcomes


def test_programs_are_many_and_not_trivial(programs):
    assert len(programs) == COUNT
    for word in ("if bool", "while", "for", "break", "else", "_(", "int(n)", "self.total"):
        assert sum(word in program.source for program in programs) >= COUNT / 40, word
