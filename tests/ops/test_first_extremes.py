"""The places of extremes: the first of equal ones, or of NaN, as eager gives them, by folds that are vectors."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch.export import Dim

import pipeline

SHAPES = [((1031,), 0), ((5, 7), 1), ((5, 7), 0), ((4, 33), -1), ((2, 3, 19), 1), ((0, 4), 1), ((5, 1), 1)]
INTEGERS = ("int64", "int8", "uint8")


def all_of(x, dim):
    """What has places, with kept dims and without."""
    return (x.argmax(dim), x.argmin(dim, keepdim=True), *x.max(dim), *x.min(dim, keepdim=True))


def compare(function, args):
    executable = pipeline.compile(Function(function), args)
    for got, eager in zip(executable(*args), function(*args), strict=True):
        torch.testing.assert_close(got, eager, rtol=0, atol=0, equal_nan=True)
    return executable


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8"])
def test_ties(dtype):
    """Few numbers, so that most extremes are there several times; all shapes are one program."""
    generator = torch.Generator().manual_seed(3)
    low = 0 if dtype == "uint8" else -3
    inputs = [torch.randint(low, 4, shape, generator=generator).to(getattr(torch, dtype)) for shape, _ in SHAPES]

    def function(*inputs):
        return [found for x, (_, dim) in zip(inputs, SHAPES, strict=True) for found in all_of(x, dim)]

    compare(function, tuple(inputs))


@pytest.mark.parametrize("dim", [0, 1])
def test_special_floats(dim):
    """Lines of one number, of NaN, with several NaN, of infinities alone, and of both zeros."""
    nan, inf = torch.nan, torch.inf
    lines = [[nan] * 19, [inf] * 19, [-inf] * 19, [0.0, -0.0] * 9 + [0.0], [-0.0, 0.0] * 9 + [-0.0], [5.0] * 19]
    lines += [[1.0, nan, inf, nan, -inf] + [2.0] * 14, [-inf] * 18 + [nan], [3.0] * 17 + [inf, inf]]
    x = torch.tensor(lines)
    compare(lambda x: all_of(x, dim), (x if dim else x.t().contiguous(),))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_ends_of_integers(dtype):
    ends = torch.iinfo(getattr(torch, dtype))
    lines = [
        [ends.min] * 5,
        [ends.max] * 5,
        [ends.max, ends.min] * 2 + [ends.max],
        [1, ends.min, ends.min, 0, ends.max],
    ]
    compare(lambda x: all_of(x, 1), (torch.tensor(lines, dtype=getattr(torch, dtype)),))


def test_symbolic_sizes_and_strides():
    rows, columns = Dim("rows", max=300), Dim("columns", min=1, max=3000)

    def function(x):
        return (*all_of(x, 1), x.t().argmax(0), x.long().argmax(1), *x.long().min(1))

    executable = pipeline.compile(Function(function), (torch.randn(9, 24),), dynamic_shapes=(({0: rows, 1: columns},),))
    generator = torch.Generator().manual_seed(7)
    for shape in ((1, 1), (2, 7), (7, 1027), (300, 3), (4, 2048)):
        x = torch.randint(-9, 9, shape, generator=generator).float()
        for given in (x, x.t().contiguous().t()):
            for got, eager in zip(executable(given), function(x), strict=True):
                assert torch.equal(got, eager)


def test_of_all_elements_and_of_numbers():
    x = torch.randint(-4, 4, (5, 23), generator=torch.manual_seed(2))

    def function(x, y, z):
        flat = (x.argmax(), x.argmin(keepdim=True), x.float().t().argmax(), x.float().argmin(keepdim=True))
        return (*flat, y.argmax(), z.argmin(), y.argmax(0), *z.max(0))

    compare(function, (x, torch.tensor(3.0), torch.tensor(4)))


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8"])
@pytest.mark.parametrize("shape", [(50, 7), (6, 130)], ids=str)
def test_rows_are_vectors(shape, dtype):
    """No loop of these goes on number by number."""
    x = torch.randn(shape, generator=torch.manual_seed(1)).mul(9).to(getattr(torch, dtype))
    executable = compare(lambda x: (x.argmax(-1), x.argmin(-1)), (x,))
    remarks = [remark for remark in executable.remarks if remark.pass_name == "tile-and-vectorize"]
    assert remarks
    assert not [remark.reason for remark in remarks if remark.kind == "missed"]
