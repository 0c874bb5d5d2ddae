"""What becomes of random programs with branches and loops: fused, not fused, and in eager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from outcomes import RIGHT, Outcome
from script_programs import ScriptProgram, script

import pipeline
from pipeline.errors import CaptureError, PipelineError
from pipeline.runtime.executable import Executable

#: What makes fewer and larger kernels.
FUSION = ("fuse-elementwise", "form-groups")


def compiled(programs: Sequence[ScriptProgram], module: torch.jit.ScriptModule) -> list[Executable]:
    """The programs fused and not."""
    captured = pipeline.capture(module, tuple(argument for program in programs for argument in program.arguments()))
    return [captured.compile(disable=disabled) for disabled in ((), FUSION)]


def fused_and_unfused(programs: Sequence[ScriptProgram]) -> list[Outcome]:
    """Bit by bit as eager, with several values of the arguments; see `outcomes`."""
    with torch.no_grad():
        return _fused_and_unfused(programs)


def _fused_and_unfused(programs: Sequence[ScriptProgram]) -> list[Outcome]:
    module = script(programs)
    try:
        executables = compiled(programs, module)
    except PipelineError as error:
        if len(programs) > 1:
            half = len(programs) // 2
            return [*_fused_and_unfused(programs[:half]), *_fused_and_unfused(programs[half:])]
        clear = isinstance(error, CaptureError) and "clone it before" in str(error)
        return [("refused" if clear else "defect", f"{programs[0].source}\n{error}")]
    problems = [
        differences(programs, module, executable, name, seed)
        for seed in range(3)
        for name, executable in zip(("fused", "unfused"), executables, strict=True)
    ]
    texts = ["\n".join(filter(None, found)) for found in zip(*problems, strict=True)]
    return [("wrong", text) if text else RIGHT for text in texts]


def differences(
    programs: Sequence[ScriptProgram], module: torch.jit.ScriptModule, executable: Executable, name: str, seed: int
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
