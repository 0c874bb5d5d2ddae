"""The lines of `forward` that nodes of a graph are told by: those that torch itself keeps."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pipeline.frontend.capture.callables import module_of_function
from pipeline.frontend.capture.lean_traces import lean_traces


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        for number in range(2):
            x = x * number + self.halves(x)
        return self.linear(x).view(x.shape[0] * 2, 2)

    def halves(self, x):
        return x.chunk(2, 1)[0].repeat(1, 2)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(Scaled(), nn.ReLU())

    def forward(self, x):
        return self.inner(x) + x.shape[0] * 2


def double(x):
    return x + x.amax(1, keepdim=True)


def traces(model):
    exported = torch.export.export(model, (torch.ones(3, 4),), dynamic_shapes=({0: torch.export.Dim("n")},))
    return [(node.name, node.meta.get("stack_trace")) for node in exported.graph.nodes]


@pytest.mark.parametrize("model", [Outer(), module_of_function(double, 1)], ids=["module", "function"])
def test_they_are_torchs(model):
    expected = traces(model)
    with lean_traces():
        assert traces(model) == expected
    assert any(text and __file__ in text for _, text in expected)
