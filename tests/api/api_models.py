"""What the tests of the public API share: models, and a comparison with eager."""

from __future__ import annotations

import torch
from torch import nn

import pipeline


class Calls(nn.Module):
    """A module around a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, scale: torch.Tensor | None = None):
        y = torch.relu(self.linear(x))
        return y if scale is None else y * scale


def check(function, *args, **kwargs):
    """Compiles, runs, and compares the results with eager's, structure and all; returns them."""
    model = Calls(function)
    result = pipeline.compile(model, args, kwargs)(*args, **kwargs)
    torch.testing.assert_close(result, model(*args, **kwargs))
    return result
