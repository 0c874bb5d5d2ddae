"""Ops whose sizes are too small for what they do: where eager raises, so do we; nothing is read or written outside."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from numerics import differences
from small_sizes import OPS
from torch.export import Dim

import pipeline


@pytest.mark.parametrize("name", OPS)
def test_sizes_that_are_too_small(name):
    model = Function(OPS[name])
    executable = pipeline.compile(model, (torch.randn(6, 4),), dynamic_shapes=(({0: Dim.AUTO},),))
    taken = 0
    for size in range(8):
        x = torch.randn(size, 4)
        expected = _of_eager(model, x)
        if expected is None:
            with pytest.raises(pipeline.PipelineError):
                executable(x)
        else:
            taken += 1
            assert not differences(executable(x), expected)
    assert taken


def _of_eager(model, x):
    try:
        return model(x)
    except (RuntimeError, IndexError, ZeroDivisionError):
        return None


@pytest.mark.parametrize("name", ["max along", "amin", "argmax", "select_scatter", "slice_scatter", "unfold"])
def test_sizes_that_are_known(name):
    with pytest.raises(pipeline.PipelineError):
        pipeline.compile(Function(OPS[name]), (torch.randn(0, 4),))(torch.randn(0, 4))
