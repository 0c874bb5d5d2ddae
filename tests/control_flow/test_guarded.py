"""What a condition guards does not run where it does not hold, and loops that run no round compute nothing."""

from __future__ import annotations

import pytest
import torch
from cases import zero
from function_model import Function
from numerics import differences
from torch._higher_order_ops import while_loop

import pipeline
from pipeline import PipelineError


@pytest.fixture(autouse=True)
def _inference():
    """Eager's branches may write in place only where no gradients are wanted."""
    with torch.no_grad():
        yield


def divided(x, y, n):
    return torch.cond((y != 0).all(), lambda: x // y, lambda: x + 1, ())


def remainder(x, y, n):
    return torch.cond((y != 0).all(), lambda: torch.fmod(x, y) + x % y, lambda: x - 1, ())


def after_the_branch(x, y, n):
    """The division is in front of the branch, whose result only one side needs; it runs in eager."""
    safe = torch.where(y == 0, 1, y)
    quotient = x // safe
    return torch.cond((y != 0).all(), lambda: quotient * 2, lambda: x * 3, ())


def element(x, y, n):
    """An index that is in range where the condition holds."""
    return torch.cond(n < x.shape[0], lambda: x.index_select(0, n.reshape(1)), lambda: x[:1] - 7, ())


def written_row(x, y, n):
    def write():
        x.index_fill_(0, n.reshape(1), 5)
        return x.sum()

    return torch.cond(n < x.shape[0], write, lambda: x.sum() * 2, ())


def no_round(x, y, n):
    """Invariant in the loop; it would divide by zero."""
    return while_loop(lambda i, h: i < n, lambda i, h: (i + 1, h + x // y), (zero(), x * 1))[1]


def one_side_of_the_loop(x, y, n):
    def body(i, h):
        return i + 1, torch.cond((y != 0).all(), lambda: h + x // y, lambda: h + 1, ())

    return while_loop(lambda i, h: i < n, body, (zero(), x * 1))[1]


def same_in_both(x, y, n):
    """A division in both branches may leave them, but not what guards them."""

    def both():
        return torch.cond(n > 3, lambda: x // y + 1, lambda: x // y - 1, ())

    return torch.cond((y != 0).all(), both, lambda: x * 1, ())


def arguments(size, divisor, n):
    x = torch.arange(-3, size - 3, dtype=torch.int64)
    return x, torch.full((size,), divisor, dtype=torch.int64), torch.tensor(n)


@pytest.mark.parametrize("size", [1, 5, 40_000])
@pytest.mark.parametrize(
    "function",
    [divided, remainder, after_the_branch, element, written_row, one_side_of_the_loop, same_in_both],
)
def test_integers(function, size):
    model = Function(function)
    executable = pipeline.compile(model, arguments(size, 2, 0))
    for divisor in (2, 0, -3):
        for n in (0, 4, 50_000 if function in (element, written_row) else 5):
            given, theirs = arguments(size, divisor, n), arguments(size, divisor, n)
            found = differences((executable(*given), given), (model(*theirs), theirs))
            assert not found, (divisor, n, found)


@pytest.mark.parametrize("size", [1, 5, 40_000])
def test_a_loop_without_rounds(size):
    model = Function(no_round)
    executable = pipeline.compile(model, arguments(size, 2, 1))
    for divisor, n in ((2, 3), (0, 0), (3, 0)):
        assert not differences(executable(*arguments(size, divisor, n)), model(*arguments(size, divisor, n)))
    with pytest.raises(PipelineError, match="zero"):
        executable(*arguments(size, 0, 1))


def roots(x):
    return torch.cond((x > 0).all(), lambda: x.sqrt() + x.log() + 1 / x, lambda: x * 0.5, ())


def elementwise_roots(x):
    return torch.where(x > 0, x.sqrt() + x.log(), -x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 5, 40_000])
@pytest.mark.parametrize("function", [roots, elementwise_roots])
def test_floats(function, size, dtype):
    """They may run in vain: their results do not reach what is returned."""
    model = Function(function)
    executable = pipeline.compile(model, (torch.ones(size, dtype=dtype),))
    for value in (2.0, 0.0, -1.0, float("inf")):
        x = torch.full((size,), value, dtype=dtype)
        assert not differences(executable(x), model(x)), value
