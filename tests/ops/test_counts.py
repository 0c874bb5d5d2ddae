"""bincount: of how many numbers, which ones, and what is refused."""

from __future__ import annotations

import pytest
import torch
from function_model import Function

import pipeline


def counts(x, weights):
    plain = torch.bincount(x), torch.bincount(x, minlength=5)
    return (*plain, torch.bincount(x, weights, minlength=3)) if len(x) else plain


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("count", [0, 1, 17, 1000])
def test_counts(count, dtype):
    generator = torch.manual_seed(6)
    x = torch.randint(0, 23, (count,), generator=generator).to(getattr(torch, dtype))
    weights = torch.randn(count, generator=generator, dtype=torch.float64)
    results = pipeline.compile(Function(counts), (x, weights))(x, weights)
    for result, expected in zip(results, counts(x, weights), strict=True):
        assert result.dtype == expected.dtype
        torch.testing.assert_close(result, expected)


def test_every_second_number():
    x = torch.arange(60).remainder(7)[::2]
    model = Function(torch.bincount)
    assert pipeline.compile(model, (x,))(x).equal(torch.bincount(x))


def test_as_many_as_the_call_has():
    model = Function(lambda x: torch.bincount(x, minlength=4))
    exe = pipeline.compile(model, (torch.arange(9),), dynamic_shapes=(({0: torch.export.Dim("n", min=0)},),))
    for count in (0, 1, 3, 9):
        assert exe(torch.arange(count)).equal(torch.bincount(torch.arange(count), minlength=4))


@pytest.mark.parametrize("numbers", [[-1], [3, -1, 2], [-5, -7], [-(2**63), 1]])
def test_negative_numbers_are_refused(numbers):
    x = torch.tensor(numbers)
    exe = pipeline.compile(Function(torch.bincount), (torch.ones_like(x),))
    with pytest.raises(pipeline.PipelineError):
        exe(x)


def test_one_pass_finds_the_range():
    x = torch.arange(1000)
    exe = pipeline.compile(Function(lambda x: torch.bincount(x, minlength=1000)), (x,))
    assert sum("reduction" in kernel.kind for kernel in exe.kernels) == 2  # the range, and the check of the indices
