"""Parameters, buffers and tensors that models have as attributes, of sizes that differ from call to call.

A Gaussian process has the data that it was fit to, a decoder the keys of the text so far: dynamo takes them for static
inputs, and once it has seen two sizes of one it makes the size a symbol.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

KINDS = ["attribute", "buffer", "parameter"]


class Holder(nn.Module):
    """A model with a tensor of `count` rows, beside a weight of the same size in each."""

    def __init__(self, kind, count):
        super().__init__()
        data = torch.rand(count, 3)
        if kind == "attribute":
            self.data = data
        elif kind == "buffer":
            self.register_buffer("data", data)
        else:
            self.data = nn.Parameter(data)
        self.scale = nn.Parameter(torch.rand(1, 3) + 0.5)

    def forward(self, x):
        scaled = self.data / self.scale
        return scaled, self.data / self.scale, scaled.sum(0) + x, torch.cdist(x, scaled), x @ self.data.mT


def compared(called, model, x):
    results, expected = called(model, x), model(x)
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result, value, rtol=1e-5, atol=1e-6)
    return results, expected


def gradients(results, model):
    model.zero_grad()
    sum(result.sin().sum() for result in results).backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("trains", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_models_with_data_of_several_sizes(kind, trains, dynamic):
    called = torch.compile(
        lambda model, x: model(x), backend="pipeline", dynamic=dynamic, options={"fallback": "error"}
    )
    with torch.set_grad_enabled(trains):
        for count in (8, 5, 7, 1, 12):
            model = Holder(kind, count)
            results, expected = compared(called, model, torch.rand(4, 3))
            if trains:
                for gradient, value in zip(gradients(results, model), gradients(expected, model), strict=True):
                    torch.testing.assert_close(gradient, value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_data_that_grow(kind):
    """One model whose tensor is another one, larger by a row, in each call."""
    model = Holder(kind, 3)
    called = torch.compile(model, backend="pipeline", options={"fallback": "error"})
    with torch.no_grad():
        for _ in range(5):
            compared(lambda _, x: called(x), model, torch.rand(4, 3))
            grown = torch.cat([model.data, torch.rand(1, 3)])
            model.data = nn.Parameter(grown) if kind == "parameter" else grown


@pytest.mark.parametrize("kind", KINDS)
def test_data_marked_dynamic(kind):
    called = torch.compile(lambda model, x: model(x), backend="pipeline", options={"fallback": "error"})
    with torch.no_grad():
        for count in (8, 5):
            model = Holder(kind, count)
            torch._dynamo.maybe_mark_dynamic(model.data, 0)
            compared(called, model, torch.rand(4, 3))
