"""500 random programs: each gives what eager gives, or one clear error before anything runs.

Some are compiled with each op in a kernel of its own, too: fused, unfused and eager agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from programs import Program, programs
from workers import Worker

COUNT = 500

#: How many of them one test runs: batches can be shared by the workers of pytest-xdist.
BATCH = 50

#: One program of so many is compiled unfused as well: a second compilation of each would take CI as long again.
UNFUSED_EVERY = 3


def sample(count: int) -> list[Program]:
    """The same programs every time."""
    found: list[Program] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def collect(program: Program) -> None:
        found.append(program)

    collect()
    return found


@pytest.fixture(scope="module")
def drawn() -> list[Program]:
    return sample(COUNT)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


def test_programs_are_many_and_not_trivial(drawn):
    assert len(drawn) == COUNT
    used = Counter(step.op for program in drawn for step in program.steps)
    assert len(used) > 60
    assert sum(used.values()) > 2 * COUNT


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_programs_give_what_eager_gives_or_are_refused(drawn, worker, first):
    batch = drawn[first : first + BATCH]
    results = list(zip(batch, worker.outcomes(batch, UNFUSED_EVERY), strict=True))
    bad = [f"{what}: {program}\n    {text}" for program, (what, text) in results if what not in ("right", "refused")]
    assert not bad, "\n".join(bad)
    refused = [f"{program}\n    {text}" for program, (what, text) in results if what == "refused"]
    assert len(refused) < 0.2 * BATCH, "\n".join(refused)
