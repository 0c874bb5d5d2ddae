"""Slices that count a size from the end: read, written to, and with gradients."""

from __future__ import annotations

import pytest
import torch
from dynamo_state import fresh_dynamo
from function_model import Function
from torch.export import Dim

import pipeline

__all__ = ["fresh_dynamo"]


def written(x, n):
    y = x * 1
    y[..., -n:] = x[..., :n] * 3
    return y


#: Functions of a tensor and of a size that is not known.
FUNCTIONS = {
    "last": lambda x, n: x[..., -n:] * 2,
    "all but the last": lambda x, n: x[..., :-n] * 2,
    "between": lambda x, n: x[..., -n - 1 : -1].sin(),
    "every other one": lambda x, n: x[..., -n::2].sin(),
    "written": written,
    "filled": lambda x, n: torch.zeros_like(x).slice_scatter(x[..., :n], -1, -n),
}

#: The size comes first; the last one may be more than there are.
SIZES = [(4, 3, 9), (5, 3, 11), (2, 1, 2), (3, 2, 30)]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_torch_compile(name, grad):
    def function(x):
        return FUNCTIONS[name](x, x.size(0))

    compiled = torch.compile(function, backend="pipeline", dynamic=True)
    for size in [*SIZES, *([(6, 2, 4)] if name in ("last", "all but the last", "every other one") else [])]:
        x = torch.randn(size, requires_grad=grad)
        mine, theirs = compiled(x), function(x)
        torch.testing.assert_close(mine, theirs)
        if grad:
            gradients = [torch.autograd.grad(result.sin().sum(), x)[0] for result in (mine, theirs)]
            torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", ["between", "filled", "last", "written"])  # torch.export takes the others for no size
def test_compile(name):
    model = Function(lambda x: FUNCTIONS[name](x, x.size(0)))
    executable = pipeline.compile(model, (torch.randn(4, 3, 9),), dynamic_shapes=(({0: Dim("n", min=1, max=6)},),))
    for rows in (1, 2, 5, 6):
        x = torch.randn(rows, 3, 9)
        torch.testing.assert_close(executable(x), model(x))
