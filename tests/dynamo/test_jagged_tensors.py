"""Nested tensors with rows of several lengths: compiled once for all lengths, with gradients and without."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.nn import functional as F


def jagged(*lengths, width=5):
    return torch.nested.nested_tensor(
        [torch.randn(length, width) for length in lengths], layout=torch.jagged, requires_grad=True
    )


LINEAR, NORM, EMBEDDING = nn.Linear(5, 7), nn.LayerNorm(5), nn.Embedding(10, 8)

PROGRAMS = {
    "elementwise": lambda x: x.sin() * 2,
    "with itself": lambda x: x * x.cos() + 1,
    "layers": lambda x: F.gelu(LINEAR(NORM(x))),
    "softmax": lambda x: x.softmax(-1),
    "with a row": lambda x: x * torch.arange(5.0),
    "its values": lambda x: x.values() * 2,
    "padded": lambda x: x.to_padded_tensor(0.0) + 1,
}


def dense(x):
    return x.values() if x.is_nested else x


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    compiled = torch.compile(PROGRAMS[name], backend="pipeline")
    for lengths in ((2, 3), (4, 1, 6), (7, 2), (0, 3)):
        x = jagged(*lengths)
        results = compiled(x), PROGRAMS[name](x)
        torch.testing.assert_close(*map(dense, results), rtol=1e-5, atol=1e-5)
        gradients = [torch.autograd.grad(dense(result).square().sum(), x)[0].values() for result in results]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)
    assert counters["pipeline"]["graphs"] <= 3  # for a length, for any, and for another number of rows
    with torch.no_grad():
        torch.testing.assert_close(*map(dense, (compiled(x), PROGRAMS[name](x))), rtol=1e-5, atol=1e-5)


def test_two_of_the_same_lengths():
    x = jagged(2, 4)
    y = x.detach().clone().requires_grad_()
    results = torch.compile(lambda x, y: x * y + 1, backend="pipeline")(x, y), x * y + 1
    for got, expected in zip(*(torch.autograd.grad(dense(z).sum(), (x, y)) for z in results), strict=True):
        torch.testing.assert_close(got.values(), expected.values())


def test_indices():
    ids = torch.nested.nested_tensor([torch.tensor([1, 2]), torch.tensor([3, 4, 5])], layout=torch.jagged)
    got = torch.compile(lambda ids: EMBEDDING(ids), backend="pipeline")(ids)
    torch.testing.assert_close(got.values(), EMBEDDING(ids).values())
