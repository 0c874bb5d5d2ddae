"""Functions that torch writes with branches on values: covariances, and the loss of a normal distribution."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from numerics import check
from torch import nn

import pipeline

WEIGHTS = torch.tensor([2, 0, 1, 3, 1]), torch.tensor([0.5, 0.1, 0.2, 1.0, 0.7])


def covariances(x):
    times, shares = WEIGHTS
    many = 4 if x.is_complex() else 9  # complex numbers divided by 0 are infinite or none in eager mode, by their place
    return (
        *(torch.cov(x, correction=correction) for correction in (0, 1, many)),
        *(x.cov(fweights=times, correction=correction) for correction in (0, 1)),
        *(x.cov(aweights=shares, correction=correction) for correction in (0, 1)),
        torch.cov(x, fweights=times, aweights=shares),
        torch.corrcoef(x),
        *(x[0].cov(), x[0].corrcoef(), x[0, 0].cov(), x[:, :1].cov(), x[:0].cov(), x[:, :0].corrcoef()),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.complex64])
def test_covariances(dtype):
    x = torch.randn(3, 5, dtype=torch.complex64, generator=torch.manual_seed(0)) * 3
    check(Function(covariances), (x if dtype.is_complex else x.real).to(dtype))


def test_any_number_of_observations():
    sizes = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
    exe = pipeline.compile(lambda x: (x.cov(), x.corrcoef()), (torch.randn(3, 5),), dynamic_shapes=sizes)
    for shape in ((3, 5), (7, 2), (2, 30)):
        x = torch.randn(shape, generator=torch.manual_seed(0))
        torch.testing.assert_close(exe(x), (x.cov(), x.corrcoef()), rtol=1e-5, atol=1e-5)


def test_a_weight_below_zero_is_refused():
    exe = pipeline.compile(Function(lambda x, w: x.cov(aweights=w)), (torch.randn(3, 5), WEIGHTS[1]))
    with pytest.raises(pipeline.PipelineError, match="aweights cannot be negative"):
        exe(torch.randn(3, 5), -WEIGHTS[1])


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_normal_distributions(full, reduction):
    """A variance for each element, for each row, and for all; some are 0."""
    loss, x, y = nn.GaussianNLLLoss(full=full, reduction=reduction, eps=1e-2), torch.randn(4, 5), torch.randn(4, 5)
    variance = torch.rand(4, 5) * (torch.arange(20).view(4, 5) % 3)
    check(
        Function(lambda x, y, v: (loss(x, y, v), loss(x, y, v[:, 0]), loss(x, y, v[:, :1]), loss(x, y, 0.5))),
        x,
        y,
        variance,
    )
    exe = pipeline.compile(Function(lambda x, y, v: loss(x, y, v)), (x, y, variance))
    with pytest.raises(pipeline.PipelineError, match="var has negative entry/entries"):
        exe(x, y, variance - 1)
    with pytest.raises(pipeline.PipelineError, match="var is of incorrect size"):
        pipeline.compile(Function(lambda x, y, v: loss(x, y, v)), (x, y, variance[:, :2]))
