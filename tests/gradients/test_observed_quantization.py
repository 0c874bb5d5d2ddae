"""Fake quantization that observes its data: what it gives, the state it leaves and its gradients are eager's."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed

import pipeline

#: quant_min, quant_max and whether they are meant to be symmetric around zero.
RANGES = [(0, 255, False), (-128, 127, True), (-8, 7, True), (0, 127, False), (-127, 127, False)]


def state(channels=None):
    """running_min, running_max, scale, zero_point, of data that nobody has seen."""
    shape = () if channels is None else (channels,)
    limits = torch.full(shape, float("inf")), torch.full(shape, float("-inf"))
    return [*limits, torch.ones(channels or 1), torch.zeros(channels or 1, dtype=torch.int32)]


def steps(call, batches, kept, flags, *options):
    """Results and gradients of some calls, and the state behind them."""
    found = []
    for batch, (observes, quantizes) in zip(batches, flags, strict=True):
        x = batch.clone().requires_grad_()
        result = call(x, torch.tensor([observes]), torch.tensor([quantizes]), *kept, 0.1, *options)
        result.sin().sum().backward()
        found.append((result.detach(), x.grad))
    return found, kept


def compared(batches, make_state, flags, *options):
    function = torch.fused_moving_avg_obs_fake_quant
    compiled = torch.compile(lambda *given: function(*given), backend="pipeline", fullgraph=True)
    torch.testing.assert_close(
        steps(compiled, batches, make_state(), flags, *options),
        steps(function, batches, make_state(), flags, *options),
        rtol=1e-6,
        atol=1e-6,
        equal_nan=True,
    )


@pytest.mark.parametrize("limits", RANGES, ids=str)
def test_per_tensor(limits, count):
    torch.manual_seed(0)
    batches = [torch.randn(3, 4, 5) * (1 + step) for step in range(5)]
    first, last, symmetric = limits
    flags = [(1, 0), (1, 1), (1, 1), (0, 1), (0, 0)]
    compared(batches, state, flags, first, last, -1, False, symmetric)
    assert not count["backward in eager"]


@pytest.mark.parametrize("limits", RANGES, ids=str)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4, 5), (1, 7), (5, 1)], ids=str)
def test_per_channel(shape, limits, count):
    torch.manual_seed(0)
    batches = [torch.randn(shape) * (1 + step) for step in range(4)]
    first, last, symmetric = limits
    flags = [(1, 1), (1, 0), (0, 1), (1, 1)]
    compared(batches, lambda: state(shape[0]), flags, first, last, 0, True, symmetric)
    assert not count["backward in eager"]


@pytest.mark.parametrize("limits", [*RANGES, (0, 65535, False)], ids=str)
def test_scales_and_zero_points(limits):
    """Of ranges of all magnitudes and forms: one bit off in a scale is a step off in what is quantized by it."""
    generator = torch.Generator().manual_seed(0)
    count = 4000
    size = 10 ** (torch.rand(count, 1, generator=generator) * 18 - 12)
    x = torch.randn(count, 2, generator=generator) * size
    x[::7, 0] = 0.0
    x[::13, 1] = -x[::13, 0]
    x[::17] = x[::17].abs()
    x[::19] = -x[::19].abs()
    x[::23] = 0.0
    first, last, symmetric = limits
    on = torch.tensor([1])

    def function(x, *kept):
        return (torch.fused_moving_avg_obs_fake_quant(x, on, on, *kept, 0.1, first, last, 0, True, symmetric), *kept)

    results = [
        call(x, *state(count)) for call in (pipeline.compile(function, (x, *state(count)), fallback="error"), function)
    ]
    torch.testing.assert_close(*results, rtol=0, atol=0, equal_nan=True)


def test_numbers_that_are_none():
    """The range of data with NaN is NaN, and so is what is quantized by it; nothing is left of infinite data either."""
    for number in (float("nan"), float("inf")):
        x = torch.tensor([1.0, number, -2.0])
        compared([x, x], state, [(1, 1), (0, 1)], 0, 255, -1, False, False)


def test_channels_along_another_dim():
    function = torch.compile(torch.fused_moving_avg_obs_fake_quant, backend="pipeline")
    on = torch.tensor([1])
    with pytest.raises(BackendCompilerFailed, match="PipelineError: fused_moving_avg_obs_fake_quant: ch_axis is 1"):
        function(torch.randn(3, 4), on, on, *state(4), 0.1, 0, 255, 1, True, False)
