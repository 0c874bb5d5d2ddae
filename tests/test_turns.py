"""Which cases `make test` runs: in five turns all, in each turn one at least of every test."""

from __future__ import annotations

import pytest
from turns import NEIGHBOURS, cases_of_turn


@pytest.mark.parametrize("first", [0, 336])
def test_turns_in_sequence_have_all_cases(first):
    for count in range(1, 60):
        turns = [cases_of_turn(range(count), turn) for turn in range(first, first + NEIGHBOURS)]
        assert {case for turn in turns for case in turn} == set(range(count))
        assert {len(turn) for turn in turns} == {-(-count // NEIGHBOURS)}


def test_cases_that_come_round_in_fives_are_mixed():
    assert {case % NEIGHBOURS for case in cases_of_turn(range(60), 3)} == set(range(NEIGHBOURS))


def test_each_block_gives_the_case_of_another_place():
    assert cases_of_turn("abcdefghijkl", 336) == ["a", "f", "k"]
    assert cases_of_turn("abcdefghijkl", 337) == ["b", "g", "l"]
