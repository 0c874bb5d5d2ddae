"""Values that are results and are summed as well: their sums are accumulated tile by tile."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim

import pipeline


def _column_sums(x, y):
    z = torch.tanh(x) * y
    return z, z.sum(0), (z * x).sum(0)


def _greatest(x, y):
    z = x - y
    return z, z.amax(0), z.amin(0)


def _row_sums(x, y):
    z = x.exp() + y
    return z, z.sum(-1)


def _of_channels(x, y):
    z = x * y
    dims = [dim for dim in range(x.dim()) if dim != 1 % x.dim()]
    return z, z.sum(dims), (z * z).mean(dims)


def _in_place(x, y):
    x.mul_(2).add_(y)
    return x.sum(0), (x * y).sum(0)


FUNCTIONS = (_column_sums, _greatest, _row_sums, _of_channels, _in_place)
SHAPES = ((200, 300), (301, 37), (1000, 1), (1, 700), (3, 70, 130), (5, 7, 33, 19), (2, 5000), (4, 1, 3000))


def _all_of_them(functions, x, y):
    return [result for function in functions for result in function(x.clone(), y)]


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_beside_what_they_are_of(threads):
    functions = [lambda *pairs: [_all_of_them(FUNCTIONS, x, y) for x, y in zip(pairs[::2], pairs[1::2], strict=True)]]
    pairs = [torch.randn(shape, dtype=torch.float64) for shape in SHAPES for _ in range(2)]
    compiled = pipeline.compile(functions[0], tuple(pairs), cache=False, num_threads=threads)
    torch.testing.assert_close(compiled(*pairs), functions[0](*pairs), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.int8])
def test_dtypes(dtype):
    def function(x, y):
        z = x * y + x
        return z, z.sum(0), z.amax(0)

    x, y = (torch.randint(-9, 9, (333, 150)).to(dtype) for _ in range(2))
    compiled = pipeline.compile(function, (x, y), cache=False)
    for ours, theirs in zip(compiled(x, y), function(x, y), strict=True):
        if dtype == torch.bfloat16:
            theirs = theirs if theirs.shape == x.shape else theirs.float()
            torch.testing.assert_close(ours.to(theirs.dtype), theirs, rtol=2e-2, atol=2)
        else:
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("function", [_column_sums, _row_sums, _of_channels])
def test_sizes_that_change(function):
    dims = {0: Dim("rows", max=4000), 1: Dim("columns", max=4000)}
    x, y = torch.randn(40, 50), torch.randn(40, 50)
    compiled = pipeline.compile(function, (x, y), dynamic_shapes=(dims, dims), cache=False)
    for shape in ((40, 50), (1, 1), (1, 300), (700, 1), (257, 129), (3, 2000), (2000, 3)):
        given = torch.randn(shape), torch.randn(shape)
        torch.testing.assert_close(compiled(*given), function(*given), rtol=1e-4, atol=1e-4)


def test_long_sums_round_as_little_as_eagers():
    def function(x):
        z = x * 1.5
        return z, z.sum(0)

    x = torch.rand(50_000, 40)
    ours, theirs, exact = (
        f(v)[1].double() for f, v in ((pipeline.compile(function, (x,)), x), (function, x), (function, x.double()))
    )
    assert (ours - exact).abs().max() <= 4 * (theirs - exact).abs().max()
