"""Which results carry gradients is what eager says, also of those that lie in an argument's memory.

Between graph breaks it decides the way of gradients: a residual less `quantized.detach()` has those of the residual.
"""

from __future__ import annotations

import pytest
import torch


def without_gradients(x):
    with torch.no_grad():
        product = x * 2
    return product, product.view(-1), x + 1


FUNCTIONS = {
    "an argument": lambda x: x.detach(),
    "its data": lambda x: x.data,
    "beside what is computed": lambda x: (x.detach(), x * 2),
    "beside itself": lambda x: (x, x.detach()),
    "twice": lambda x: (x.detach(), x.detach()),
    "a view of it": lambda x: x.detach().t(),
    "of a view": lambda x: x.view(-1).detach(),
    "beside a view": lambda x: (x.view(-1), x[1:].detach()),
    "parts": lambda x: x.detach().unbind(0),
    "what is computed": lambda x: ((x * 2).detach(), x * 3),
    "beside what it is of": lambda x: ((y := x * 2), y.detach()),
    "a view of what is computed": lambda x: ((y := x * 2).view(-1).detach(), y),
    "views of what is computed": lambda x: ((y := x * 2).t(), y[0].detach()),
    "in place": lambda x: (x * 2).detach_(),
    "a leaf of its own": lambda x: (x * 2).detach().requires_grad_(),
    "without gradients": without_gradients,
    "integers": lambda x: (x.argmax(1), x.detach()[0], x.sum()),
}


def results_of(function, x):
    results = function(x)
    return (results,) if isinstance(results, torch.Tensor) else tuple(results)


def gradient(results, x):
    """That of x in a function of all results that carry gradients; None if none does."""
    carrying = [result for result in results if result.requires_grad]
    if not carrying:
        return None
    x.grad = None
    sum((result * result.cos()).sum() for result in carrying).backward()
    return x.grad


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_carry_the_gradients_of_eager(name, is_leaf, dynamic):
    function = FUNCTIONS[name]
    compiled = torch.compile(function, backend="pipeline", dynamic=dynamic, options={"fallback": "error"})
    leaf = torch.randn(3, 4, requires_grad=True)
    x = leaf if is_leaf else leaf * 1
    found, expected = results_of(compiled, x), results_of(function, x)
    for result, value in zip(found, expected, strict=True):
        assert (result.requires_grad, result.is_leaf) == (value.requires_grad, value.is_leaf)
        assert (result.data_ptr() == x.data_ptr()) == (value.data_ptr() == x.data_ptr())
        torch.testing.assert_close(result.detach(), value.detach())
    if is_leaf:
        torch.testing.assert_close(gradient(found, leaf), gradient(expected, leaf))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_of_arguments_without_gradients(name):
    function, x = FUNCTIONS[name], torch.randn(3, 4)
    found, expected = results_of(torch.compile(function, backend="pipeline"), x), results_of(function, x)
    for result, value in zip(found, expected, strict=True):
        assert result.requires_grad == value.requires_grad
        torch.testing.assert_close(result.detach(), value.detach())


def test_residuals_across_graph_breaks():
    """As residual quantizers have them: what is detached is a graph of its own."""

    def quantized(x, codes):
        nearest = codes[torch.cdist(x, codes).argmin(1)]
        torch._dynamo.graph_break()
        return x + (nearest - x).detach()

    def model(x, codes):
        residual, total = x, 0
        for _ in range(3):
            part = quantized(residual, codes)
            torch._dynamo.graph_break()
            kept = part.detach()
            torch._dynamo.graph_break()
            residual, total = residual - kept, total + part
        return total

    codes = torch.randn(8, 4)
    gradients = []
    for called in (torch.compile(model, backend="pipeline"), model):
        x = torch.linspace(-1, 1, 20).reshape(5, 4).requires_grad_()
        called(x, codes).sin().sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
