"""Gradients of transformers of several layers, in the ways in which heads are cut out of one product."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS = 12, 2


def parts_then_heads(y, count=3):
    return [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in y.chunk(count, dim=-1)]


def heads_then_parts(y, count=3):
    return y.unflatten(-1, (HEADS, -1)).transpose(1, 2).chunk(count, dim=-1)


def heads_then_sizes(y, count=3):
    heads = y.unflatten(-1, (HEADS, -1)).transpose(1, 2)
    return heads.split([heads.shape[-1] // count] * count, dim=-1)


def numbered(y, count=3):
    heads = y.reshape(*y.shape[:-1], count, HEADS, -1)
    return [heads[:, :, number].transpose(1, 2) for number in range(count)]


def unbound(y, count=3):
    return y.reshape(*y.shape[:-1], count, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)


def channels_first(y, count=3):
    return y.transpose(1, 2).unflatten(1, (HEADS, -1)).transpose(2, 3).chunk(count, dim=-1)


def sliced(y, count=3):
    size = y.shape[-1] // count
    parts = [y[..., size * number : size * (number + 1)] for number in range(count)]
    return [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts]


def by_hand(q, k, v):
    return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1) @ v


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


CUTS = [parts_then_heads, heads_then_parts, heads_then_sizes, numbered, unbound, channels_first, sliced]
ATTENTIONS = [F.scaled_dot_product_attention, causal, by_hand]


class Layer(nn.Module):
    def __init__(self, cut, attention):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.cut, self.attention = cut, attention

    def forward(self, x):
        q, k, v = self.cut(self.qkv(self.norm(x)))
        return x + self.out(self.attention(q, k, v).transpose(1, 2).flatten(2))


class Crossed(nn.Module):
    """Attends to a second sequence, whose keys and values are one product."""

    def __init__(self, cut, attention):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.cut, self.attention = cut, attention

    def forward(self, x):
        (q,), (k, v) = self.cut(self.q(x), 1), self.cut(self.kv(x.flip(1).tanh()), 2)
        return x + self.out(self.attention(q, k, v).transpose(1, 2).flatten(2))


def test_each_cut_beside_others():
    """All of them in one model, which compiles once."""
    torch.manual_seed(0)
    kinds = [(kind, cut) for kind in (Layer, Crossed) for cut in CUTS]
    check(nn.Sequential(*[kind(cut, ATTENTIONS[number % 3]) for number, (kind, cut) in enumerate(kinds)]))


@pytest.mark.parametrize("cut", CUTS)
def test_two_layers(cut):
    torch.manual_seed(0)
    check(nn.Sequential(*[Layer(cut, F.scaled_dot_product_attention) for _ in range(2)]))


def check(model):
    model, x = model.double(), torch.randn(2, 5, WIDTH, dtype=torch.float64, requires_grad=True)
    wanted = [x, *model.parameters()]
    results = [
        torch.autograd.grad(y.square().sum(), wanted) for y in (torch.compile(model, backend="pipeline")(x), model(x))
    ]
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9 * expected.abs().max().item())
