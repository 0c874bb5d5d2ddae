"""New values that cannot be computed in an argument's memory are copied there, once, and a remark says why."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from numerics import check
from updates.support import arguments, masked, remarks

import pipeline


def of_a_view(x, y, w):
    x.copy_(y)
    return x[1:].sum()


def both(x, y, w):
    x.copy_(x @ w)
    return x + y


def transposed(x, y, w):
    x.copy_(x.t().clone())
    return x + y


def old_value_later(x, y, w):
    old = x.clone()
    x.add_(y)
    return (old @ w).softmax(-1) + (x @ w)


def exchanged(x, y, w):
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    return x - y


def shifted(x, y, w):
    x[1:] = x[:-1].clone()
    return x + y


def in_a_loop(x, y, w):
    for _ in range(3):
        x.copy_(torch.tanh(x @ w))
    return x + y


def copied_to_another(x, y, w):
    x.add_(y)
    y.copy_(x)
    return x - 1


def two_updates(x, y, w):
    x[x > 0.5] = 0.25
    x.copy_(y.flip(1) + y)
    y[1:3] = (y * 2)[0:2]
    return x.sum(0)


def one_after_the_other(x, y, w):
    y.copy_(y.softmax(0) - y)
    x.copy_(torch.nn.functional.layer_norm(x, x.shape[-1:]) * x)
    between = x[:, 0:1] * 0.5 + x
    x.copy_(x.cumsum(0))
    x.add_(between.cumsum(0) - y)
    return between + 1


@pytest.mark.parametrize("shape", [(4, 4), (33, 33)])
@pytest.mark.parametrize(
    "function",
    [
        both,
        transposed,
        old_value_later,
        exchanged,
        shifted,
        in_a_loop,
        copied_to_another,
        of_a_view,
        two_updates,
        one_after_the_other,
    ],
)
def test_others_are_right(function, shape):
    check(Function(function), *arguments(*shape))


@pytest.mark.parametrize(
    "function, reason",
    [
        (both, "reads elements of the old value after it has written others"),
        (old_value_later, "reads the old value after that"),
        (exchanged, "another argument takes its old value"),
        (of_a_view, "it becomes what another argument is"),
    ],
)
def test_a_copy_says_why(function, reason):
    exe = pipeline.compile(Function(function), arguments(8, 8))
    assert any(kind == "missed" and reason in text for kind, text in remarks(exe)), remarks(exe)


@pytest.mark.parametrize("view", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[::2]])
def test_arguments_that_are_not_row_major_get_a_copy(view):
    _, y, w = arguments(8, 8)
    exe = pipeline.compile(Function(masked), arguments(*view(torch.zeros(8, 8)).shape))
    memory = torch.randn(8, 8)
    expected = memory.clone()
    y = y[: view(memory).shape[0], : view(memory).shape[1]].contiguous()
    w = torch.zeros(y.shape[1], y.shape[1])
    torch.testing.assert_close(exe(view(memory), y, w), masked(view(expected), y, w))
    assert torch.equal(memory, expected)
