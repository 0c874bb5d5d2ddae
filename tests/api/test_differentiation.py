"""Models that differentiate as they run: torch.func and torch.autograd.grad in forward."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch import nn
from torch.export import Dim

import pipeline


def squares(x):
    return (x**2).sum()


def rows(x):
    return x.sin().sum(1)


class Force(nn.Module):
    """The gradient of an energy with weights, as models of molecules have it."""

    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return -torch.func.grad(lambda places: self.energy(places).sum())(x)


def by_autograd(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return slope, torch.autograd.grad(slope.sum(), x)[0]


MODELS = {
    "grad": Function(lambda x: torch.func.grad(squares)(x)),
    "grad and value": Function(lambda x: torch.func.grad_and_value(squares)(x)),
    "vjp": Function(lambda x: torch.func.vjp(torch.sin, x)[1](x)[0]),
    "jvp": Function(lambda x: torch.func.jvp(torch.sin, (x,), (x,))),
    "jacrev": Function(lambda x: torch.func.jacrev(rows)(x)),
    "jacfwd": Function(lambda x: torch.func.jacfwd(rows)(x)),
    "hessian": Function(lambda x: torch.func.hessian(lambda y: (y**3).sum())(x[0])),
    "of each row": Function(lambda x: torch.vmap(torch.func.grad(lambda y: (y**3).sum()))(x)),
    "force": Force(),
    "autograd": Function(by_autograd),
}


@pytest.mark.parametrize("name", MODELS)
def test_derivatives(name):
    torch.manual_seed(0)
    model, x = MODELS[name], torch.randn(3, 4)
    torch.testing.assert_close(pipeline.compile(model, (x,))(x), _without_gradients(model(x)))


@pytest.mark.parametrize("name", ["grad", "force", "of each row", "autograd"])
def test_of_any_number_of_rows(name):
    model, x, sizes = MODELS[name], torch.randn(3, 4), {0: Dim("rows", max=64)}
    shapes = ((sizes,),) if isinstance(model, Function) else (sizes,)
    executable = pipeline.compile(model, (x,), dynamic_shapes=shapes)
    for count in (3, 1, 0, 7):
        x = torch.randn(count, 4)
        torch.testing.assert_close(executable(x), _without_gradients(model(x)))


def _without_gradients(results):
    return torch.utils._pytree.tree_map(torch.Tensor.detach, results)
