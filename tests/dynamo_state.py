"""Fixtures of tests of torch.compile: what dynamo knows of an earlier test, it has forgotten."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.utils import counters


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def count():
    """counters["pipeline"]: how many graphs were compiled, and how they are called."""
    return counters["pipeline"]
