"""Sizes that are too small for an op under torch.compile: eager's errors are errors, whatever was compiled before."""

from __future__ import annotations

import pytest
import torch
from numerics import differences
from small_sizes import OPS

import pipeline

NAMES = ("max along", "convolution", "pad by repetition", "unfold", "select_scatter", "slice_scatter", "narrow", "topk")


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_sizes_that_are_too_small(name):
    torch._dynamo.reset()
    compiled = torch.compile(OPS[name], backend="pipeline", dynamic=True)
    for size in (6, 2, 3, 0, 1, 5):
        x = torch.randn(size, 4)
        try:
            expected = OPS[name](x)
        except (RuntimeError, IndexError):
            with pytest.raises((RuntimeError, IndexError, pipeline.PipelineError)):  # dynamo's are RuntimeErrors
                compiled(x)
        else:
            assert not differences(compiled(x), expected)
