"""Pools of symbolic sizes: how many windows there are, the last one cut off or not, for every size."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from torch.export import Dim

import pipeline

#: Kernel, stride, padding, dilation, ceil_mode.
WINDOWS = ((2, 3, 0, 1, True), (2, 5, 1, 1, True), (3, 5, 1, 1, True), (3, 2, 1, 1, True), (1, 2, 0, 1, True))
WINDOWS += ((3, 4, 0, 2, True), (2, 3, 0, 1, False), (3, 2, 1, 1, False), (4, 3, 2, 2, True))

POOLS = {
    "max": (1, lambda x, k, s, p, d, ceil: F.max_pool1d(x, k, s, p, d, ceil)),
    "max, planes": (2, lambda x, k, s, p, d, ceil: F.max_pool2d(x, k, s, p, d, ceil)),
    "max, indices": (1, lambda x, k, s, p, d, ceil: F.max_pool1d(x, k, s, p, d, ceil, return_indices=True)),
    "mean": (1, lambda x, k, s, p, d, ceil: F.avg_pool1d(x, k, s, p, ceil)),
    "mean, planes": (2, lambda x, k, s, p, d, ceil: F.avg_pool2d(x, k, s, p, ceil)),
    "mean of data": (2, lambda x, k, s, p, d, ceil: F.avg_pool2d(x, k, s, p, ceil, count_include_pad=False)),
    "power": (1, lambda x, k, s, p, d, ceil: F.lp_pool1d(x.abs(), 2, k, s, ceil)),
}


def of_eager(model, x):
    try:
        return model(x)
    except RuntimeError:
        return None


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("name", POOLS)
def test_it_is_eagers_or_an_error_for_both(name, window):
    rank, pool = POOLS[name]
    if name.startswith(("mean", "power")) and window[3] > 1:
        window = (*window[:3], 1, window[4])  # there is no dilation
    model, height = Function(lambda x: pool(x, *window)), (6,) * (rank - 1)
    shapes = (({rank + 1: Dim.AUTO},),)
    executable = pipeline.compile(model, (torch.randn(2, 3, *height, 9),), dynamic_shapes=shapes)
    for size in range(14):
        x = torch.randn(2, 3, *height, size)
        expected = of_eager(model, x)
        if expected is None:
            with pytest.raises(pipeline.PipelineError):
                executable(x)
            continue
        results = executable(x)
        for mine, theirs in zip(*(v if isinstance(v, tuple) else (v,) for v in (results, expected)), strict=True):
            assert mine.shape == theirs.shape
            torch.testing.assert_close(mine, theirs)
