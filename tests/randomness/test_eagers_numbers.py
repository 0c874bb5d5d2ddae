"""With random="eager" a model draws eager's numbers, bit by bit: forward, with gradients, whatever lies where."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from torch import nn

import pipeline


def draws(x):
    return (
        torch.rand_like(x) + torch.randn(3, 6),
        torch.randint(0, 9, (4,)),
        torch.randperm(7),
        x.clone().uniform_(2, 5),
        torch.multinomial(x.abs(), 2),
        torch.bernoulli(torch.full_like(x, 0.3)),
        torch.normal(x, 2.0),
        x.clone().exponential_(),
        F.rrelu(x, 0.1, 0.3, True),
        F.alpha_dropout(x, 0.2, True),
        F.dropout(x.t(), 0.5, True),
        torch.rand(2),
    )


def seeded(function, *args):
    torch.manual_seed(3)
    return function(*args), torch.get_rng_state()


def test_an_executable():
    x = torch.randn(3, 6)
    exe = pipeline.compile(Function(draws), (x,), random="eager", fallback="torch")
    torch.testing.assert_close(seeded(exe, x), seeded(draws, x), rtol=0, atol=0)
    assert {"aten.rand_like", "aten.randperm", "aten.native_dropout"} <= {one.op for one in exe.fallbacks}


@pytest.mark.parametrize("dynamic", [False, True])
def test_training(dynamic):
    """Images lie with their channels last, and numbers are drawn in the order of memory."""
    first, last = nn.Conv2d(5, 7, 1), nn.Conv2d(7, 3, 1)
    model = nn.Sequential(first, nn.Dropout(0.5), nn.GELU(), nn.Dropout2d(0.5), last, nn.Dropout(0.4))
    model = model.double().to(memory_format=torch.channels_last)
    options = {"random": "eager", "fallback": "torch"}
    compiled = torch.compile(model, backend="pipeline", dynamic=dynamic, options=options)

    def step(function, x):
        model.zero_grad()
        result = function(x)
        result.square().sum().backward()
        return [result, *(parameter.grad.clone() for parameter in model.parameters())]

    for rows in (2, 3) if dynamic else (2,):
        x = torch.randn(rows, 5, 4, 6).double().to(memory_format=torch.channels_last)
        torch.testing.assert_close(seeded(step, compiled, x), seeded(step, model, x))


def test_what_cannot_be():
    with pytest.raises(pipeline.UnsupportedOpError, match="draws PyTorch's own random numbers"):
        pipeline.compile(Function(torch.rand_like), (torch.zeros(3),), random="eager", fallback="error")
    with pytest.raises(pipeline.OptionError, match="random='torch': expected one of philox, eager"):
        pipeline.compile(Function(torch.rand_like), (torch.zeros(3),), random="torch")
    with pytest.raises(pipeline.OptionError, match="random: the model is captured already"):
        pipeline.capture(Function(torch.rand_like), (torch.zeros(3),)).compile(random="eager")
