"""The vector forms of exp, tanh and erf against float64, over the whole range of float32."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def every_512th_float():
    """About eight million of the float32 numbers: all exponents, signs, denormals, infinities, NaN."""
    bits = torch.arange(-(2**31), 2**31, 512, dtype=torch.int64).to(torch.int32)
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 88.72, 88.73, -87.34, -103.9, -104.1])
    return torch.cat([bits.view(torch.float32), special])


def ulp_errors(result, exact):
    """The distance to the exact result in units of the last place of the float32 nearest to it."""
    nearest = exact.float()
    spacing = (torch.nextafter(nearest.abs(), torch.tensor(float("inf"))).double() - nearest.abs().double()).clamp(
        min=2.0**-149
    )
    return (result.double() - exact).abs() / spacing


@pytest.mark.parametrize(
    ("function", "bound"), [(torch.exp, 2.0), (torch.tanh, 5.0), (torch.erf, 8.0)], ids=["exp", "tanh", "erf"]
)
def test_within_ulps(function, bound):
    x = every_512th_float()
    result, exact = pipeline.compile(Function(function), (x,))(x), function(x.double())
    assert torch.equal(result.isnan(), x.isnan())
    overflow = exact.abs() > torch.finfo(torch.float32).max
    assert torch.equal(result[overflow], torch.full_like(result[overflow], float("inf")))
    rest = ~(overflow | x.isnan())
    errors = ulp_errors(result[rest], exact[rest])
    worst = errors.argmax()
    assert errors[worst] <= bound, f"{errors[worst]:.1f} ulp at {x[rest][worst]!r}"


def test_no_call_of_libm_is_left():
    x = torch.randn(100)
    executable = pipeline.compile(Function(lambda x: torch.exp(x) + torch.tanh(x) + torch.erf(x)), (x,))
    assert not any(name in executable.ir("llvm") for name in ("intr.exp", "intr.tanh", "@erff", "@tanhf", "@expf"))
