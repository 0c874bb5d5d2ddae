"""Functions of bfloat16 and float16 are rounded once: as far from the exact result as eager's, or within one unit."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pipeline

FUNCTIONS = {
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "mish": F.mish,
    "softplus": F.softplus,
    "elu": F.elu,
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 1.3),
    "logsigmoid": F.logsigmoid,
    "tanhshrink": F.tanhshrink,
    "hardswish": F.hardswish,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "expm1": torch.expm1,
    "sinh": torch.sinh,
    "cube": lambda x: x**3,
    "power": lambda x: x.abs() ** 2.5,
    "glu": lambda x: F.glu(x.reshape(-1, 16)),
    "lerp": lambda x: torch.lerp(x, x * 0 + 1, 0.3),
    "addcdiv": lambda x: torch.addcdiv(x, x, x * 0 + 3, value=0.3),
}


class All(nn.Module):
    """All functions of one tensor."""

    def forward(self, x):
        return [function(x) for function in FUNCTIONS.values()]


def units(result, exact, dtype):
    """The largest error, in units of the last place of the exact result."""
    limits = torch.finfo(dtype)
    unit = 2.0 ** torch.floor(torch.log2(exact.abs().clamp(min=limits.tiny))) * limits.eps
    return float(((result.double() - exact).abs() / unit).max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_as_exact_as_eager(dtype):
    model, x = All(), torch.cat([torch.linspace(-6, 6, 1000), torch.linspace(-0.02, 0.02, 24)]).to(dtype)
    results = pipeline.compile(model, (x,))(x)
    for name, result, eager, exact in zip(FUNCTIONS, results, model(x), model(x.double()), strict=True):
        assert result.dtype == dtype
        assert units(result, exact, dtype) <= max(1.01, 1.6 * units(eager, exact, dtype)), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_quotients_of_numbers_that_have_more_digits(mode, dtype):
    x = torch.linspace(-9, 9, 1001).to(dtype)

    def model(x):
        return torch.div(x, 1.3, rounding_mode=mode), torch.div(x, x + 0.1, rounding_mode=mode), x // 0.7

    for result, expected in zip(pipeline.compile(model, (x,))(x), model(x), strict=True):
        assert torch.equal(result, expected)
