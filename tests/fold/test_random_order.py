"""Random programs with norms, factors and weights of weights in odd orders: valid IR, and what eager gives."""

import random

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pipeline


class RandomOrder(nn.Module):
    """Ops on [3, 4]; weights are computed from weights at any point between them, and read before and after."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed
        self.matrices = nn.ParameterList(torch.randn(4, 4) / 2 for _ in range(3))
        self.vectors = nn.ParameterList(torch.rand(4) + 0.5 for _ in range(4))

    def forward(self, x, y):
        choice = random.Random(self.seed)
        data, vectors, matrices = [x, y], list(self.vectors), list(self.matrices)
        for _ in range(choice.randint(6, 12)):
            value, other = choice.choice(data[-3:]), choice.choice(data)
            vector, second = choice.choice(vectors[-4:]), choice.choice(vectors)
            matrix = choice.choice(matrices[-4:])
            kind = choice.choice([*_ON_DATA, *_ON_WEIGHTS])
            if kind in _ON_DATA:
                data.append(_ON_DATA[kind](value, other, vector, second, matrix))
            else:
                (vectors if kind.startswith("vector") else matrices).append(_ON_WEIGHTS[kind](vector, second, matrix))
        return data[-1], data[-2]


def _branch(value, vector, matrix):
    """Both branches compute what the other one does, and divide by it."""
    return torch.cond(
        value.sum() > 0,
        lambda d, v, w: torch.exp(v) * d + (d @ w) / v,
        lambda d, v, w: torch.exp(v) - d + (d @ w) / v,
        (value, vector, matrix),
    )


def _rotated(d, v):
    a, b = d[:, :2], d[:, 2:]
    return torch.cat([a * v[:2].cos() - b * v[:2].sin(), a * v[2:].sin() + b * v[2:].cos()], 1)


_ON_DATA = {
    "linear": lambda d, o, v, s, m: F.linear(d, m, v),
    "product": lambda d, o, v, s, m: d @ m,
    "scale": lambda d, o, v, s, m: d * v,
    "shift": lambda d, o, v, s, m: d - v,
    "divide": lambda d, o, v, s, m: (d + s) / v,
    "residual": lambda d, o, v, s, m: d + o,
    "batch norm": lambda d, o, v, s, m: F.batch_norm(d, v, v * v + 1, s, v),
    "layer norm": lambda d, o, v, s, m: F.layer_norm(d, (4,), v, s),
    "join": lambda d, o, v, s, m: torch.cat([d[:, :2], o[:, 2:]], 1) * v,
    "view": lambda d, o, v, s, m: (d.reshape(3, 2, 2) * v.view(2, 2)).reshape(3, 4),
    "convolution": lambda d, o, v, s, m: F.conv2d(d.mT.reshape(1, 4, 1, 3), m[:, :, None, None], v).reshape(4, 3).mT,
    "rotation": lambda d, o, v, s, m: _rotated(d, v),
    "branch": lambda d, o, v, s, m: _branch(d, v, m),
}
_ON_WEIGHTS = {
    "vector of a vector": lambda v, s, m: v.exp() * 0.3,
    "vector of two": lambda v, s, m: v * s,
    "vector of a matrix": lambda v, s, m: m.sum(0).tanh() + 2,
    "matrix of two": lambda v, s, m: m @ m.mT * 0.3,
    "matrix of a vector": lambda v, s, m: m * v,
}


@pytest.mark.parametrize("seed", range(12))
def test_random_order(seed):
    torch.manual_seed(seed)
    model, args = RandomOrder(seed).eval(), (torch.randn(3, 4), torch.randn(3, 4))
    with torch.no_grad():
        expected = model(*args)
        exact = model.double()(*(arg.double() for arg in args))
        model.float()
    result = pipeline.compile(model, args)(*args)
    for ours, eager, right in zip(result, expected, exact, strict=True):
        tolerance = 1e-4 * max(1.0, right.abs().max().item()) + 20 * (eager - right).abs().max().item()
        torch.testing.assert_close(ours.double(), right, rtol=1e-3, atol=tolerance)
