"""Greedy generation is eager mode's, token by token."""

from __future__ import annotations

import pytest
import torch
from generation.small_models import NAMES, eager, prompt, small_model

import pipeline


@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_those_of_eager_mode(name):
    """Prompts of several lengths, one after the other in the same cache, then 200 tokens."""
    model = small_model(name)
    lm = pipeline.generation.compile(model, max_length=240)
    for length, count in ((17, 20), (1, 5), (2, 30), (31, 200)):
        ids = prompt(1, length)
        got = lm.generate(ids, max_new_tokens=count, do_sample=False)
        assert torch.equal(got, eager(model, ids, max_new_tokens=count, do_sample=False)), (length, count)
    assert len(set(got[0, 31:].tolist())) > 2  # or the test would say little
