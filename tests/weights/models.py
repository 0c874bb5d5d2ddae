"""Models whose weights are read in different ways, and the ways in which weights change."""

from __future__ import annotations

import torch
from torch import nn


class Counting(nn.Module):
    """Writes to a buffer in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.sum(0))
        return x * self.total


class Tied(nn.Module):
    """Has one tensor under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(50, 64), nn.Linear(64, 50, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(x))


class Transposed(nn.Module):
    """Has a weight and a buffer that are not row-major, so that code reads copies."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(7, 64).t())
        self.register_buffer("last", torch.zeros(7, 3).t())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x @ self.weight + self.last
        self.last.copy_(y)
        return y


class Nested(nn.Module):
    """Has parameters, buffers and plain tensors at several depths."""

    def __init__(self) -> None:
        super().__init__()
        norm = nn.BatchNorm1d(16)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        self.layers = nn.Sequential(nn.Linear(64, 16), norm, nn.Sequential(nn.ReLU(), nn.Linear(16, 64)))
        self.register_buffer("shift", torch.randn(64), persistent=False)
        self.plain = torch.randn(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x) + self.shift * (x @ self.plain)


FLOATS = torch.linspace(-2, 2, 192).view(3, 64)
PLACES = torch.tensor([3, 49, 0])

#: A model, and what it is called with.
MODELS = {
    "packed and bias": (lambda: nn.Linear(64, 300), FLOATS),
    "read in place": (lambda: nn.Embedding(50, 64), PLACES),
    "mutated": (Counting, FLOATS),
    "tied": (Tied, PLACES),
    "not row-major": (Transposed, FLOATS),
    "nested": (Nested, FLOATS),
}
