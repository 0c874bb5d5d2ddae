"""Elementwise ops over small innermost dims run over all that follows each other, and compute what eager does."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from numerics import check, differences
from torch import nn
from torch.export import Dim

import pipeline

SHAPES = [(6, 5, 3, 3), (2, 3, 7, 7), (33, 1, 5), (4, 1, 1, 3), (1, 9), (0, 3, 3), (40, 3)]

FORMS = [
    lambda x: torch.tanh(x * 2 + 1) * x,
    lambda x: (x + 1, (x * x).relu(), x > 0),
    lambda x: x * x[..., :1] + x[:1],
    lambda x: x[1:] * 2 + x[:-1],
    lambda x: x[..., 1:] * 2 + x[..., :-1],
    lambda x: x.transpose(0, -1) * 3 + 1,
    lambda x: x[..., ::2] * 2,
    lambda x: x.mul_(2).add_(1),
    lambda x: (x * 10).to(torch.int8) + 1,
    lambda x: x + torch.arange(x.shape[-1]),
    lambda x: x.movedim(-1, 1).contiguous().movedim(1, -1) * 2,
    lambda x: x.flatten(1).t().contiguous(),
    lambda x: (x.movedim(1, -1) + 1).contiguous().movedim(-1, 1).contiguous(),
]


class Forms(nn.Module):
    """All forms in one program, each of a tensor of its own."""

    def forward(self, *tensors):
        return [form(x) for form, x in zip(FORMS, tensors, strict=True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forms(shape, dtype):
    torch.manual_seed(0)
    data = [torch.randn(shape) * 3 for _ in FORMS]
    check(Forms(), *[x.to(dtype) for x in (data if dtype.is_floating_point else map(torch.round, data))])


def test_planes_of_any_size():
    shapes = ({0: Dim("n", max=64), 2: Dim("h", max=64)}, None)
    model = Function(lambda x, bias: torch.sigmoid(x + bias[:, None, None]) * x)
    executable = pipeline.compile(model, (torch.randn(3, 4, 5, 7), torch.randn(4)), dynamic_shapes=(shapes,))
    for batch, height in ((0, 5), (1, 1), (2, 7), (5, 33)):
        args = torch.randn(batch, 4, height, 7), torch.randn(4)
        assert not differences(executable(*args), model(*args))


@pytest.mark.parametrize("threads", [1, 2])
def test_large_weights_in_place(threads):
    """Tiles of a group are parts of a buffer, which follow each other as well."""
    torch.manual_seed(0)

    def step(weight, mean, gradient):
        mean.lerp_(gradient, 0.1)
        weight.mul_(0.99).sub_(mean / (mean.square().sqrt() + 1e-3))

    shape = (96, 120, 3, 3)
    args = [torch.randn(shape) for _ in range(3)]
    expected = [x.clone() for x in args]
    step(*expected)
    executable = pipeline.compile(Function(step), tuple(x.clone() for x in args), num_threads=threads)
    executable(*args)
    assert not differences(args, expected)
