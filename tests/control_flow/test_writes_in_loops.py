"""Writes in place in the bodies of loops: what torch takes gives what eager gives, all else is one error."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from cases import numbers, zero
from numerics import differences
from torch import nn
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_rows

import pipeline
from pipeline.errors import CaptureError

Form = Callable[["Model", torch.Tensor, torch.Tensor], Any]

#: What a model of a vector `x` and a number of rounds `n` computes, by name.
LOOPS: dict[str, Form] = {}


def form(function: Form) -> Form:
    """Lists a form by its name."""
    LOOPS[function.__name__] = function
    return function


def rounds(n: torch.Tensor, body: Callable[..., Any], *state: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """`n` rounds of `body`, which takes and returns a counter and the state; the last state."""
    return while_loop(lambda i, *_: i < n, body, (zero(), *state))[1:]


class Model(nn.Module):
    """A form, with a vector and a matrix as buffers."""

    def __init__(self, function: Form):
        super().__init__()
        self.function = function
        self.register_buffer("vector", torch.ones(4))
        self.register_buffer("matrix", torch.zeros(6, 4))

    def forward(self, x, n):
        return self.function(self, x, n)


@form
def captured(model, x, n):
    total = x * 2

    def body(i, h):
        total.add_(h)
        return i + 1, h * 0.5

    return rounds(n, body, x), total


@form
def argument(model, x, n):
    def body(i, h):
        x.mul_(0.5)
        return i + 1, h + 1

    return rounds(n, body, x * 1)


@form
def captured_view(model, x, n):
    total = x * 2
    view = total[1:]

    def body(i, h):
        view.add_(h[1:])
        return i + 1, h * 0.5

    return rounds(n, body, x), total


@form
def view_taken_inside(model, x, n):
    total = x * 2

    def body(i, h):
        total[::2].mul_(2)
        total.view(-1)[0] = 3
        return i + 1, h * 0.5 + total.sum()

    return rounds(n, body, x), total


@form
def transposed_view(model, x, n):
    total = torch.stack([x, x + 1])
    view = total.t()

    def body(i, h):
        view[0].add_(h[:2])
        view.neg_()
        return i + 1, h * 0.5

    return rounds(n, body, x), total


@form
def rows_and_columns(model, x, n):
    total = torch.zeros(5, 4)

    def body(i, h):
        total.select(0, 1).add_(h)
        total[:, 2] = h.sum()
        total[1:3, ::2].mul_(3)
        return i + 1, h * 0.5

    return rounds(n, body, x), total


@form
def masked(model, x, n):
    total = x * 2

    def body(i, h):
        total[total > 1] = 0.5
        total.masked_fill_(h < 0, 3)
        return i + 1, h * 0.5

    return rounds(n, body, x), total


@form
def copied_from_elsewhere(model, x, n):
    total = x * 2

    def body(i, h):
        total.copy_(h.flip(0))
        return i + 1, h + total

    return rounds(n, body, x), total


@form
def other_dtypes(model, x, n):
    wide, flags = torch.zeros(4, dtype=torch.float64), x > 0

    def body(i, h):
        wide.add_(h)
        flags.logical_or_(h < 0.25)
        return i + 1, h * 0.5

    return rounds(n, body, x), wide, flags


@form
def carried(model, x, n):
    def body(i, h):
        h.add_(1)
        return i + 1, h * 2

    return rounds(n, body, x * 1)


@form
def carried_argument(model, x, n):
    def body(i, h):
        h.add_(1)
        return i + 1, h * 1

    return rounds(n, body, x)


@form
def carried_view(model, x, n):
    def body(i, h):
        h[1:].mul_(2)
        return i + 1, h.clone()

    return rounds(n, body, x * 1)


@form
def exchanged(model, x, n):
    def body(i, a, b):
        a.add_(b)
        return i + 1, b.clone(), a.clone()

    return rounds(n, body, x * 1, x + 1)


@form
def counter(model, x, n):
    def body(i, h):
        i.add_(1)
        return i.clone(), h * 2

    return rounds(n, body, x)


@form
def buffer(model, x, n):
    def body(i, h):
        model.vector.add_(h)
        return i + 1, h * 0.5

    return rounds(n, body, x)


@form
def buffer_view(model, x, n):
    def body(i, h):
        model.vector[:2].add_(h[:2])
        model.vector[-1] = h.sum()
        return i + 1, h * 0.5

    return rounds(n, body, x), model.vector * 1


@form
def buffer_row(model, x, n):
    def body(i, h):
        model.matrix.index_copy_(0, i.reshape(1), h.unsqueeze(0))
        return i + 1, h * 0.5

    return rounds(n, body, x), model.matrix.sum(0)


@form
def in_a_branch(model, x, n):
    total = x * 2

    def body(i, h):
        torch.cond(h.sum() > 0, lambda: total.add_(h) * 1, lambda: total.mul_(2) * 1, ())
        return i + 1, h - 1

    return rounds(n, body, x), total


@form
def in_an_inner_loop(model, x, n):
    total = x * 2

    def body(i, h):
        def inner(j, g):
            total.add_(g)
            model.vector.mul_(0.5)
            return j + 1, g * 0.5

        return i + 1, while_loop(lambda j, g: j <= i, inner, (zero(), h))[1]

    return rounds(n, body, x), total


@form
def read_by_the_condition(model, x, n):
    total = x * 0

    def body(i, h):
        total.add_(1)
        return i + 1, h + total

    return while_loop(lambda i, h: (total.sum() < 8) & (i < n), body, (zero(), x))[1], total


@form
def returned(model, x, n):
    total = x * 2

    def body(i, h):
        total.add_(1)
        return i + 1, total.clone()

    return rounds(n, body, x), total


@form
def own_copy_in_scan(model, x, n):
    def step(h, row):
        h, row = h.clone(), row.clone()
        row[1:].mul_(2)
        h.add_(row)
        return h, h * n

    return scan(step, x, model.matrix + x)


@form
def own_copy_in_map(model, x, n):
    def row(one):
        own = one * 1
        torch.cond(own.sum() > 0, lambda: own.add_(1) * 1, lambda: own[:2].mul_(2) * 1, ())
        return own + n

    return map_rows(row, model.matrix + x)


@pytest.mark.parametrize("name", LOOPS)
def test_forms(name):
    model = Model(LOOPS[name])
    eager = copy.deepcopy(model)
    with torch.no_grad():
        executable = pipeline.compile(model, (numbers(4), torch.tensor(2)))
        for n in (0, 1, 2, 5):
            given, theirs = (numbers(4), torch.tensor(n)), (numbers(4), torch.tensor(n))
            got, expected = executable(*given), eager(*theirs)
            found = differences((got, given, dict(model.state_dict())), (expected, theirs, dict(eager.state_dict())))
            assert not found, (n, found)


def scan_writes(target: str) -> Form:
    """A scan whose body writes to one of what it has."""

    def function(model, x, n):
        total = x * 2

        def step(h, row):
            {"capture": total, "view": total[1:], "state": h, "row": row, "buffer": model.vector}[target].add_(1)
            return h + row, h * 1

        return scan(step, x * 1, model.matrix + x), total

    return function


def map_writes(target: str) -> Form:
    """A map whose body writes to one of what it has."""

    def function(model, x, n):
        total = x * 2

        def row(one):
            {"capture": total, "view": total[1:], "row": one, "buffer": model.vector}[target].add_(1)
            return one * 2

        return map_rows(row, model.matrix + x), total

    return function


REFUSED = {f"scan_{one}": scan_writes(one) for one in ("capture", "view", "state", "row", "buffer")}
REFUSED |= {f"map_{one}": map_writes(one) for one in ("capture", "view", "row", "buffer")}


@pytest.mark.parametrize("name", REFUSED)
def test_what_scan_and_map_may_not_write_to(name):
    """Torch refuses these in eager, so there is nothing that they should give."""
    arguments = numbers(4), torch.tensor(2)
    message = "the body of a scan or a map writes in place to what it is given or captures; carry that or return it"
    with pytest.raises(CaptureError, match=rf"{message} \(at .*test_writes_in_loops.py:\d+\)"):
        pipeline.compile(Model(REFUSED[name]), arguments)
    with pytest.raises(RuntimeError, match="input mutation"):
        Model(REFUSED[name])(*arguments)


def hands_on_what_it_got(model, x, n):
    def body(i, h):
        h.add_(1)
        return i + 1, h

    return rounds(n, body, x * 1)


def captures_a_view_too(model, x, n):
    total = x * 2
    view = total[1:]

    def body(i, h):
        view.add_(1)
        total.mul_(0.5)
        return i + 1, h + total

    return rounds(n, body, x)


@pytest.mark.parametrize("function", [hands_on_what_it_got, captures_a_view_too])
def test_two_names_for_one_tensor(function):
    """Torch refuses these in eager, too."""
    arguments = numbers(4), torch.tensor(2)
    with pytest.raises(CaptureError, match=r"has a tensor under two names: .* return a clone \(at .*:\d+\)"):
        pipeline.compile(Model(function), arguments)
    with pytest.raises(RuntimeError, match="aliasing|input mutation"):
        Model(function)(*arguments)
