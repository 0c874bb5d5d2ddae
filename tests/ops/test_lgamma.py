"""lgamma is lowered: against float64 on all of the line, its poles and zeros among it."""

import math

import pytest
import torch
from torch import nn

import pipeline


class Lgamma(nn.Module):
    def forward(self, x):
        return torch.lgamma(x)


POINTS = [0.0, -0.0, 1.0, 2.0, 3.0, -1.0, -2.0, -7.0, 0.5, -0.5, 1e-30, -1e-30, 1e30, -1e30, 3e38, math.inf, -math.inf]


@pytest.fixture(scope="module")
def lines():
    torch.manual_seed(0)
    near = torch.tensor([1.0, 2.0, -2.4570247, -2.7476826, -3.143580])  # zeros
    around = (near[:, None] + torch.linspace(-1e-3, 1e-3, 41)).flatten()
    return torch.cat([torch.tensor([*POINTS, math.nan]), around, torch.randn(400) * 8, torch.rand(300) * 200])


@pytest.mark.parametrize(("dtype", "ulps"), [(torch.float32, 2), (torch.bfloat16, 1), (torch.float16, 1)])
def test_errors(dtype, ulps, lines):
    x = lines.to(dtype)
    executable = pipeline.compile(Lgamma(), (x,))
    exact = torch.lgamma(x.double())
    rounded = exact.to(dtype)
    result = executable(x)
    finite = rounded.isfinite()
    torch.testing.assert_close(result[~finite], rounded[~finite], equal_nan=True)
    step = torch.maximum(exact.abs(), torch.tensor(torch.finfo(dtype).tiny)) * torch.finfo(dtype).eps
    error = ((result.double() - exact).abs() - 2e-14) / step  # at zeros float64 itself has no more digits
    assert error[finite].max() <= ulps


def test_whole_numbers():
    x = torch.arange(-3, 12)
    torch.testing.assert_close(pipeline.compile(Lgamma(), (x,))(x), torch.lgamma(x))


def test_float64(lines):
    x = lines.double()
    x = torch.cat([x, x + 1e-9, torch.tensor([1 + 1e-12, 2 - 1e-12, 0.5 - 2**-54, 1e305, 1e308, -1e15 - 0.5]).double()])
    result, exact = pipeline.compile(Lgamma(), (x,))(x), torch.lgamma(x)
    torch.testing.assert_close(result[~exact.isfinite()], exact[~exact.isfinite()], equal_nan=True)
    finite = exact.isfinite()
    error = ((result - exact).abs() - 5e-15 * (x < 0)) / (exact.abs() + 1e-300)  # the zeros below 0 are differences
    assert error[finite].max() <= 4 * torch.finfo(torch.float64).eps
