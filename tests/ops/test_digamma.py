"""digamma and trigamma are lowered: against float64 on all of the line."""

import math

import pytest
import torch
from torch import nn

import pipeline

POINTS = [0.0, -0.0, 1.0, 2.0, 1.4616321449683622, 0.5, -0.5, 1e-30, -1e-30, 1e30, 3e38, math.inf, -math.inf, math.nan]
POLES = [-1.0, -2.0, -7.0, -1e30]


class Polygamma(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return torch.polygamma(self.n, x) if self.n else torch.digamma(x)


def exactly(n, x):
    """In float64; eager's trigamma has nine digits, so that of zeta functions, in place of it."""
    if n == 0:
        return torch.digamma(x)
    above = torch.special.zeta(torch.full_like(x, 2), torch.where(x < 0.5, 1 - x, x))
    ratio = torch.pi / (torch.pi * (x - x.round())).sin()
    return torch.where(x < 0.5, ratio * ratio - above, torch.where(x == math.inf, 0.0, above))


@pytest.fixture(scope="module")
def line():
    torch.manual_seed(0)
    return torch.cat([torch.tensor(POINTS), torch.randn(400) * 8, torch.rand(300) * 200, 10 - torch.rand(50) * 1e-3])


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_errors(n, dtype, line):
    x = line.to(dtype)
    x = x[(x != x.round()) | (x >= 0) | (n == 0)]
    exact = exactly(n, x.double())
    result = pipeline.compile(Polygamma(n), (x,))(x)
    rounded = exact.to(dtype)
    finite = rounded.isfinite()
    torch.testing.assert_close(result[~finite], rounded[~finite], equal_nan=True)
    step = torch.maximum(exact.abs(), torch.tensor(torch.finfo(dtype).tiny)) * torch.finfo(dtype).eps
    error = ((result.double() - exact).abs() - 1e-14 * (1 + exact.abs())) / step
    assert error[finite].max() <= 1


@pytest.mark.parametrize("n", [0, 1])
def test_float64(n, line):
    x = line.double()
    result, exact = pipeline.compile(Polygamma(n), (x,))(x), exactly(n, x)
    finite = exact.isfinite()
    torch.testing.assert_close(result[~finite], exact[~finite], equal_nan=True)
    torch.testing.assert_close(result[finite], exact[finite], rtol=2e-13, atol=2e-14)


@pytest.mark.parametrize(("n", "expected"), [(0, math.nan), (1, math.inf)])
def test_poles(n, expected):
    x = torch.tensor(POLES, dtype=torch.float64)
    result = pipeline.compile(Polygamma(n), (x,))(x)
    torch.testing.assert_close(result, torch.full_like(x, expected), equal_nan=True)


@pytest.mark.parametrize("n", [0, 1])
def test_whole_numbers(n):
    x = torch.arange(1, 12)
    torch.testing.assert_close(pipeline.compile(Polygamma(n), (x,))(x), torch.polygamma(n, x))
