"""Gradients of every activation function of torch.nn.functional, as in evaluation, judged by float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

ACTIVATIONS = {
    "celu": lambda x: F.celu(x, 0.7),
    "elu": lambda x: F.elu(x, 1.3),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "glu": lambda x: F.glu(x, -1),
    "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardtanh": F.hardtanh,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
    "prelu": lambda x: F.prelu(x, torch.full((6,), 0.3, dtype=x.dtype)),
    "relu": F.relu,
    "relu6": F.relu6,
    "rrelu": lambda x: F.rrelu(x, 0.2, 0.4),
    "selu": F.selu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "softmax": lambda x: F.softmax(x, -1),
    "softmin": lambda x: F.softmin(x, 0),
    "softplus": lambda x: F.softplus(x, 2.0),
    "softshrink": F.softshrink,
    "softsign": F.softsign,
    "tanh": torch.tanh,
    "tanhshrink": F.tanhshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 2.0),
}


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_gradients(name):
    torch.manual_seed(0)
    function, x = ACTIVATIONS[name], (torch.randn(7, 6) * 3).requires_grad_()
    compiled, exact = torch.compile(function, backend="pipeline")(x), function(x.double())
    torch.testing.assert_close(compiled.double(), exact, rtol=1e-5, atol=1e-6)
    weight = torch.randn_like(compiled)
    (gradient,) = torch.autograd.grad(compiled, x, weight)
    (expected,) = torch.autograd.grad(exact, x, weight.double())
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-6)


def test_slopes_that_are_drawn():
    """The gradient of rrelu in training is what its result was multiplied by."""
    torch.manual_seed(0)
    x = (torch.randn(500) - 1).requires_grad_()
    result = torch.compile(lambda x: F.rrelu(x, 0.2, 0.4, training=True), backend="pipeline")(x)
    (slope,) = torch.autograd.grad(result.sum(), x)
    torch.testing.assert_close(slope * x, result)
    drawn = slope[x <= 0]
    assert ((drawn >= 0.2) & (drawn <= 0.4)).all() and drawn.std() > 0.04
