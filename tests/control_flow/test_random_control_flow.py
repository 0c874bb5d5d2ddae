"""300 random programs with branches, loops and writes in place: fused = unfused = eager, bit by bit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from script_programs import ScriptProgram, script_programs

import pipeline

COUNT = 300

#: How many there are of each batch, so that several processes can share the work.
BATCH = 25

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


def compare(program: ScriptProgram) -> str:
    """`right`, or `refused` if there is one clear error before anything runs; fails where something differs."""
    script = program.script()
    try:
        fused = pipeline.compile(script, program.arguments())
    except pipeline.CaptureError as error:
        assert "clone it before" in str(error), f"{program.source}\n{error}"
        return "refused"
    unfused = pipeline.compile(fused.ir("linalg"), disable=FUSION)
    for seed in range(3):
        eager, arguments = program.python(), [replace(program, seed=program.seed + seed).arguments() for _ in range(3)]
        expected = (*eager(*arguments[0]), *arguments[0], eager.total)
        script.total.zero_()
        values = {"fused": (*fused(*arguments[1]), *arguments[1], script.total)}
        raw = unfused(*_main_arguments(fused, arguments[2]))
        values["unfused"] = tuple(raw)[: len(expected)]
    return "right"
