"""Torch's functions on Python's numbers alone, sizes among them, as Longformer divides the length of its text."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch.export import Dim

import pipeline

FUNCTIONS = {
    "length of a slice": lambda x: x[: int(torch.div(x.size(0), 2, rounding_mode="trunc"))] * 2,
    "size of a view": lambda x: x.view(torch.div(x.size(0), 4, rounding_mode="floor"), 4, -1) * 2,
    "operand": lambda x: x * torch.div(x.size(0), 3),
    "sums": lambda x: x + torch.add(3, x.size(0)) * torch.mul(2, 3.5) - torch.sub(5, 2, alpha=3),
    "no tensor else": lambda x: (torch.true_divide(1, 2), torch.floor_divide(-7, 2), torch.mul(2.5, True), x + 1),
    "complex": lambda x: torch.mul(2j, 1 + 1j) * x,
}


@pytest.mark.parametrize("sizes", [None, (({0: Dim("n", min=4)},),)])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_compile(name, sizes):
    x = torch.randn(8, 3)
    model = Function(FUNCTIONS[name])
    torch.testing.assert_close(pipeline.compile(model, (x,), dynamic_shapes=sizes)(x), model(x))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_torch_compile(name, grad):
    compiled = torch.compile(FUNCTIONS[name], backend="pipeline")
    for rows in (8, 12, 16):
        x = torch.randn(rows, 3, requires_grad=grad)
        torch.testing.assert_close(compiled(x), FUNCTIONS[name](x))
