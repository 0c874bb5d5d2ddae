"""Histograms and modes: the same as eager's, at edges, for ties and for data without a range."""

from __future__ import annotations

import math

import pytest
import torch
from function_model import Function
from torch.export import Dim

import pipeline

EDGES = [0.0, 1, 2, 5, 5, 4.9999995, -1, -0.0, 6, math.nan, math.inf, -math.inf, 0.1, 0.3, 3.3333333, 1e-30]


def values(shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    return (torch.randn(shape, generator=generator) * 3).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_histc(dtype):
    x = torch.cat([torch.tensor(EDGES).to(dtype), values(500, dtype)])

    def function(x):
        return x.histc(5, 0, 5), x.histc(7, -1.5, 4.7), x.histc(100, -3, 3)

    expected = function(x.float() if dtype.itemsize == 2 else x)  # eager rounds on the way to a bin's number
    executable = pipeline.compile(Function(function), (x,))
    torch.testing.assert_close(executable(x), tuple(one.to(dtype) for one in expected), rtol=0, atol=0)


def test_histc_without_limits():
    shapes = (({0: Dim("rows")},),)
    executable = pipeline.compile(Function(lambda x: x.histc(9)), (values((3, 4)),), dynamic_shapes=shapes)
    for x in (values((3, 4)), values((17, 4)), torch.full((2, 4), 2.5)):
        torch.testing.assert_close(executable(x), x.histc(9))
    for bad in (math.nan, math.inf):
        with pytest.raises(pipeline.PipelineError, match="histc: range is not finite"):
            executable(torch.tensor([[1, 2, 3, bad]]).expand(2, 4).clone())


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0), (3, 1, 5)])
def test_histc_of_few_elements(shape):
    x = values(shape)
    executable = pipeline.compile(Function(lambda x: (x.histc(3), x.histc(4, -2, 2))), (x,))
    torch.testing.assert_close(executable(x), (x.histc(3), x.histc(4, -2, 2)))


def test_histc_of_limits_that_are_none():
    with pytest.raises(pipeline.PipelineError, match="max must be larger than min"):
        pipeline.compile(Function(lambda x: x.histc(3, 2, 1)), (values(4),))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_mode(dtype):
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(0, 4, (5, 9, 3), generator=generator).to(dtype)

    def function(x):
        return x.mode(1), x.mode(0, keepdim=True), x.mT.mode().values, x[:, :1].mode(1)

    mine = pipeline.compile(Function(function), (x,))(x)
    theirs = function(x)
    assert torch.equal(mine[2], theirs[2])
    for one, other, dim, keeps in ((mine[0], theirs[0], 1, False), (mine[1], theirs[1], 0, True)):
        assert torch.equal(one[0], other[0])
        places = one[1] if keeps else one[1].unsqueeze(dim)
        found = x.gather(dim, places)
        assert torch.equal(found if keeps else found.squeeze(dim), other[0])
    assert torch.equal(mine[3][0], theirs[3][0]) and torch.equal(mine[3][1], theirs[3][1])


def test_mode_of_symbolic_sizes_and_nan():
    shapes = (({0: Dim("rows"), 1: Dim("columns")},),)
    executable = pipeline.compile(Function(lambda x: x.mode(1)), (values((3, 4)).round(),), dynamic_shapes=shapes)
    for x in (values((2, 31)).round(), values((5, 1)), torch.tensor([[math.nan, 1, 1, math.nan], [3, 2, 2, 3]])):
        torch.testing.assert_close(executable(x)[0], x.mode(1).values)


def test_mode_of_a_number():
    x = torch.tensor(2.5)
    torch.testing.assert_close(pipeline.compile(Function(lambda x: tuple(x.mode())), (x,))(x), tuple(x.mode()))
