"""Steps on either side of a cast to fewer bits are no one step: what the cast rounds away stays away."""

import pytest
import torch
from function_model import Function
from torch import nn

import pipeline

SMALL = (torch.float16, torch.bfloat16)


class Steps(nn.Module):
    """(x - low) * 100 in float32, rounded, and a third of that."""

    def __init__(self, small: torch.dtype):
        super().__init__()
        self.low = nn.Parameter(torch.tensor(0.1))
        self.small = small

    def forward(self, x):
        return ((x - self.low) * 100).to(self.small).float() / 3


@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize("given", [torch.float32, *SMALL])
def test_affine_steps(small, given):
    model, x = Steps(small), (torch.randn(301) * 10).to(given)
    assert torch.equal(pipeline.compile(model, (x,))(x), model(x))


@pytest.mark.parametrize("small", SMALL)
def test_casts_alone(small):
    model, x = Function(lambda x: (x * 1.001).to(small).float() * 3), torch.randn(301) * 10
    assert torch.equal(pipeline.compile(model, (x,))(x), model(x))


@pytest.mark.parametrize("small", SMALL)
def test_norms_behind_a_rounded_convolution(small):
    """Scaled before or after it is rounded, the convolution errs alike; but rounded it is."""
    model = nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4)).eval()
    nn.init.uniform_(model[1].weight, 0.5, 2)
    rounded, x = Function(lambda x: model[1](model[0](x).to(small).float())), torch.randn(2, 3, 50)
    result, exact = pipeline.compile(rounded, (x,))(x), model.double()(x.double())
    error = (result - exact).abs().max() / exact.abs().max()
    assert torch.finfo(small).eps / 50 < error < torch.finfo(small).eps
