"""A slice of what scripts/fuzz.py tries: programs give what eager gives, or one clear error before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from drawing import Draw
from kinds import KINDS
from workers import Worker

#: How many programs of each kind: the first seeds, the same ones every time.
COUNTS = {
    "static": 288,
    "symbolic": 144,
    "passes": 24,
    "gpus": 24,
    "threads": 48,
    "norms": 12,
    "gradients": 72,
    "branches": 180,
    "nested": 30,
}

#: How many of them one test tries, so that several processes can share the work.
BATCH = {
    "static": 48,
    "symbolic": 24,
    "passes": 12,
    "gpus": 12,
    "threads": 16,
    "norms": 12,
    "gradients": 24,
    "branches": 30,
    "nested": 10,
}

#: The least part of each kind that is not refused.
RIGHT = {
    "static": 0.85,
    "symbolic": 0.7,
    "passes": 0.7,
    "gpus": 0.7,
    "threads": 0.85,
    "norms": 1,
    "gradients": 0.8,
    "branches": 0.6,
    "nested": 0.6,
}


def batches() -> list[tuple[str, int]]:
    """(kind, first seed) of what is tried."""
    return [(kind, first) for kind in COUNTS for first in range(0, COUNTS[kind], BATCH[kind])]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


@pytest.mark.parametrize("kind, first", batches())
def test_programs_give_what_eager_gives_or_are_refused(worker, kind, first):
    programs = [KINDS[kind].draw(Draw(seed)) for seed in range(first, first + BATCH[kind])]
    outcomes = worker.outcomes(kind, programs)
    bad = [f"{what}: {text}\n{one}" for one, (what, text) in zip(programs, outcomes, strict=True) if _is_bad(what)]
    assert not bad, "\n".join(bad)
    refused = [text for what, text in outcomes if what == "refused"]
    assert len(refused) <= (1 - RIGHT[kind]) * len(programs), "\n".join(refused)


def _is_bad(what: str) -> bool:
    return what not in ("right", "refused")


@pytest.mark.parametrize("kind", ["static", "symbolic", "threads"])
def test_programs_on_tensors_are_not_trivial(kind):
    programs = [KINDS[kind].draw(Draw(seed)) for seed in range(COUNTS[kind])]
    steps = [step.op for program in programs for step in program.steps]
    assert len(set(steps)) > 60
    assert len(steps) > 2 * COUNTS[kind]


@pytest.mark.parametrize("kind", ["branches", "nested"])
def test_programs_with_regions_are_not_trivial(kind):
    programs = [KINDS[kind].draw(Draw(seed)) for seed in range(COUNTS[kind])]
    for word in ("if bool", "while", "for", "break", "else", "_(", "int(n)", "self.total"):
        assert sum(word in program.source for program in programs) >= COUNTS[kind] / 40, word
