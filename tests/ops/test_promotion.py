"""Ops on operands of two integer types, of which either may have no dims: eager's common type decides."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import pipeline

DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int64)
SHAPES = (((), (5,)), ((5,), ()), ((5,), (5,)))

#: Ops whose results depend on the highest bits, too.
OPS = {
    "lt": torch.lt,
    "ge": torch.ge,
    "eq": torch.eq,
    "maximum": torch.maximum,
    "fmin": torch.fmin,
    "remainder": lambda a, b: torch.remainder(a, b | 1),
    "floor_divide": lambda a, b: torch.floor_divide(a, b | 1),
    "copysign": torch.copysign,
    "div": lambda a, b: a / (b | 1),
    "clamp": lambda a, b: torch.clamp(a, min=b),
    "where": lambda a, b: torch.where(a > b, a, b),
}


class Pairs(nn.Module):
    """An op on pairs of arguments."""

    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, *values):
        return [self.op(*pair) for pair in zip(values[::2], values[1::2], strict=True)]


def sample(dtype, shape, draw):
    """Some of all values, negative ones where there are."""
    high = 2 if dtype == torch.bool else 256
    return torch.randint(0, high, shape, generator=draw).to(torch.uint8).view(torch.int8).to(dtype)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_it_is_eagers(op):
    draw, arguments = torch.Generator().manual_seed(0), []
    for (one, other), shapes in itertools.product(itertools.permutations(DTYPES, 2), SHAPES):
        pair = sample(one, shapes[0], draw), sample(other, shapes[1], draw)
        try:
            op(*pair)
        except RuntimeError:  # eager has no such op for these types
            continue
        arguments += pair
    model = Pairs(op)
    for result, expected in zip(pipeline.compile(model, tuple(arguments))(*arguments), model(*arguments), strict=True):
        assert result.dtype == expected.dtype
        torch.testing.assert_close(result, expected)
