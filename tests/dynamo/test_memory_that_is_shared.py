"""Inputs and results that are views of each other: as in eager, also after a graph break."""

from __future__ import annotations

import pytest
import torch

import pipeline


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def both(function, make, after=lambda inputs, results: None, times=2):
    """Inputs and results of compiled and eager calls, each after `after` has written to them."""
    compiled = torch.compile(function, backend="pipeline")
    for _ in range(times):
        torch.manual_seed(0)
        ours, theirs = make(), None
        torch.manual_seed(0)
        theirs = make()
        found, expected = compiled(*ours), function(*theirs)
        torch.testing.assert_close((found, ours), (expected, theirs))
        after(ours, found)
        after(theirs, expected)
        torch.testing.assert_close((found, ours), (expected, theirs))
    return compiled


def add_to_first_result(inputs, results):
    results[0].add_(10)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2, (x * 2).t()),
        lambda x: ((y := x * 2), y.t(), y[0], y.view(-1)),
        lambda x: ((y := x.t() * 2), y[:, 1:], y.flatten()),
        lambda x: ((y := x * 2)[1:], y[:2], y.unbind(1)),
        lambda x: ((y := x + 1), y),
        lambda x: x.exp().split(1, 0),
        lambda x: ((y := x.t().contiguous() * 3), y.t().unsqueeze(0).expand(2, 3, 4)),
    ],
)
def test_results_that_share_memory(function, count):
    both(function, lambda: (torch.randn(3, 4),), add_to_first_result)
    assert count["direct"] == count["graphs"] == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x.t(), y + 1, x),
        lambda x, y: (x[1:, ::2], x.view(-1), x.detach()),
        lambda x, y: (x.add_(1), y * x),
        lambda x, y: (x.add_(1)[0], x.t(), y.mul_(2).flatten()),
        lambda x, y: (x.copy_(y), y.t()),
        lambda x, y: ((z := x + 1), x.copy_(z), x.t()),
        lambda x, y: (x.zero_().t(), y.copy_(x + 3)),
        lambda x, y: (x[0].fill_(5), x.t(), (x * y).sum()),
    ],
)
def test_results_that_lie_in_inputs(function):
    both(function, lambda: (torch.randn(3, 4), torch.randn(3, 4)), add_to_first_result)


def test_a_view_of_an_input_is_made_by_no_code():
    compiled = torch.compile(lambda x: (x.t(), x[0]), backend="pipeline")
    x = torch.randn(3, 4)
    assert compiled(x)[0].data_ptr() == compiled(x)[1].data_ptr() == x.data_ptr()
    assert pipeline.executables(compiled) == []


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.squeeze(),
        lambda x: x.squeeze(1),
        lambda x: x.squeeze((1, 3)),
        lambda x: x.flatten(1),
        lambda x: x.unflatten(2, (5, 1)),
        lambda x: x.permute(2, 3, 0, 1),
        lambda x: x.expand(2, 3, 4, 5, 6),
        lambda x: x[1:, :, ::2],
        lambda x: x.diagonal(0, 0, 2),
        lambda x: x.as_strided((2, 2), (1, 2)),
        lambda x: x.unfold(2, 2, 1),
        lambda x: x.view_as(x),
        lambda x: x.unbind(2)[3],
        lambda x: x.tensor_split(2, 2)[1],
        lambda x: x.real,
    ],
)
def test_views_of_an_input_carry_gradients(view):
    compiled = torch.compile(view, backend="pipeline")
    x = torch.randn(3, 1, 5, 1, requires_grad=True)
    with torch.enable_grad():
        mine, theirs = compiled(x), view(x)
    assert torch.equal(mine, theirs) and mine.stride() == theirs.stride() and mine.data_ptr() == theirs.data_ptr()
    gradients = [torch.autograd.grad(result, x, torch.ones_like(result))[0] for result in (mine, theirs)]
    assert torch.equal(*gradients)


def test_a_graph_break_between_a_view_and_a_write():
    def function(x):
        y = x.exp()
        row = y[0]
        torch._dynamo.graph_break()
        y.add_(1)
        return row * 2, y

    both(function, lambda: (torch.randn(3, 4),))


@pytest.mark.parametrize(
    "views",
    [
        lambda x: (x, x),
        lambda x: (x, x.view(-1)),
        lambda x: (x[:3], x[1:]),
        lambda x: (x[::2], x[1::2]),
        lambda x: (x.t(), x),
    ],
)
def test_inputs_that_share_memory(views):
    def function(x, y):
        x.mul_(2)
        return x.sum() + y.sum(), y * 3

    both(function, lambda: views(torch.randn(4, 4)))


def test_inputs_that_come_to_share_memory(count):
    """Compiled for tensors apart; then one call writes to columns whose bytes lie between those of another."""

    def function(x, y):
        x.mul_(2)
        y.add_(1)
        return x * y

    compiled = torch.compile(function, backend="pipeline", dynamic=False)
    x = torch.randn(4, 4)
    compiled(x[:, :2].clone(memory_format=torch.preserve_format), x[:, 2:].clone())
    ours, theirs = x.clone(), x.clone()
    torch.testing.assert_close(compiled(ours[:, ::2], ours[:, 1::2]), function(theirs[:, ::2], theirs[:, 1::2]))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: (torch.set_grad_enabled(True), x * 2)[1:], "switches gradients on or off"),
    ],
)
def test_what_the_runtime_of_torch_does_is_said(function, reason, count):
    compiled = both(function, lambda: (torch.randn(3, 4),), times=1)
    assert dict(count) == {"graphs": 1, "runtime": 1}
    (executable,) = pipeline.executables(compiled)
    assert any(reason in remark.reason for remark in executable.remarks)


@pytest.mark.parametrize("make", [lambda: torch.randn(4, 3).t(), lambda: torch.randn(6, 8)[::2, ::2]])
def test_inputs_that_are_not_row_major_are_written_to(make):
    def function(x):
        x.add_(1)
        return x.sum(0)

    both(function, lambda: (make(),))


def test_subclasses_of_tensor():
    from torch.testing._internal.two_tensor import TwoTensor

    compiled = torch.compile(lambda x: x * 2 + 1, backend="pipeline")
    x = TwoTensor(torch.ones(3), torch.zeros(3))
    result = compiled(x)
    torch.testing.assert_close(result.a, torch.full((3,), 3.0))
    torch.testing.assert_close(result.b, torch.ones(3))
