"""Models with branches and loops give what eager gives, for arguments that take every way through them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from branch_models import BRANCHES
from loop_models import LOOPS
from numerics import differences
from scripted_models import SCRIPTED
from torch import nn

import pipeline

EXPORTED = {**BRANCHES, **LOOPS}


def check(compiled: Any, ours: nn.Module, eager: nn.Module, argument_sets: list[Any]) -> None:
    """Compares results, mutated arguments and state, call by call."""
    for number, arguments in enumerate(argument_sets):
        theirs, given = copy.deepcopy(arguments), copy.deepcopy(arguments)
        expected, got = eager(*theirs), compiled(*given)
        found = differences((got, given, dict(ours.state_dict())), (expected, theirs, dict(eager.state_dict())))
        assert not found, (number, found)


@pytest.fixture(autouse=True)
def _inference():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.mark.parametrize("name", EXPORTED)
def test_export(name):
    kind, argument_sets = EXPORTED[name]
    model = kind().eval()
    eager = copy.deepcopy(model)
    check(pipeline.compile(model, argument_sets[0]), model, eager, argument_sets)


@pytest.mark.parametrize("name", SCRIPTED)
def test_script(name):
    kind, argument_sets = SCRIPTED[name]
    model = kind().eval()
    eager = copy.deepcopy(model)
    check(pipeline.compile(model, argument_sets[0], capture="script"), model, eager, argument_sets)


def test_there_are_enough():
    assert len(EXPORTED) + len(SCRIPTED) >= 30
