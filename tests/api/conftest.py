"""A compiled model for the tests of the public API."""

from __future__ import annotations

import pytest
import torch
from api_models import Linear

import pipeline


@pytest.fixture(scope="module")
def linear():
    model = Linear().eval().requires_grad_(False)
    return model, pipeline.compile(model, (torch.randn(2, 4),))
