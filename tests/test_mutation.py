"""What a model writes to is written to after the call, as in eager."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import pipeline
from pipeline import ArgumentError


class Adds(nn.Module):
    def forward(self, x, y):
        x.add_(y)
        return x * 2


class Counter(nn.Module):
    def __init__(self, layout=None):
        super().__init__()
        total = torch.zeros(2, 3)
        self.register_buffer("total", layout(total) if layout else total)

    def forward(self, x):
        self.total.add_(x)
        return self.total.sum(0)


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 8, 4))

    def forward(self, key):
        self.keys[:, :-1] = self.keys[:, 1:].clone()
        self.keys[:, -1:] = key
        return self.keys * 1


def test_batch_norm_in_training():
    eager = nn.BatchNorm2d(3)
    ours = copy.deepcopy(eager)
    exe = pipeline.compile(ours, (torch.randn(2, 3, 4, 4),))
    for _ in range(3):
        x = torch.randn(2, 3, 4, 4)
        with torch.no_grad():
            torch.testing.assert_close(exe(x), eager(x))
    torch.testing.assert_close(ours.state_dict(), eager.state_dict())
    assert ours.num_batches_tracked == 3


def test_cache_by_position():
    class Positions(Cache):
        def forward(self, position, key):
            self.keys[:, position] = key
            return self.keys * 1

    model, eager = Positions(), Positions()
    exe = pipeline.compile(model, (torch.tensor([0]), torch.randn(1, 1, 4)))
    for position in (0, 5, 7):
        args = torch.tensor([position]), torch.randn(1, 1, 4)
        torch.testing.assert_close(exe(*args), eager(*args))
    torch.testing.assert_close(model.keys, eager.keys)


def test_cache_by_slice_assignment():
    model, eager = Cache(), Cache()
    exe = pipeline.compile(model, (torch.randn(1, 1, 4),))
    for _ in range(3):
        key = torch.randn(1, 1, 4)
        torch.testing.assert_close(exe(key), eager(key))
    torch.testing.assert_close(model.keys, eager.keys)


@pytest.mark.parametrize(
    "layout",
    [None, lambda t: torch.zeros(3, 2).t(), lambda t: torch.zeros(4, 6)[::2, ::2]],
    ids=["row-major", "transposed", "strided"],
)
def test_buffers(layout):
    """One that is not row-major too: what calls write is seen by the module and by the next call."""
    model, eager = Counter(layout), Counter()
    exe = pipeline.compile(model, (torch.ones(2, 3),))
    place = model.total.data_ptr()
    for _ in range(3):
        x = torch.randn(2, 3)
        torch.testing.assert_close(exe(x), eager(x))
    torch.testing.assert_close(model.total, eager.total)
    assert model.total.data_ptr() == place


def test_an_argument():
    exe = pipeline.compile(Adds(), (torch.ones(3), torch.ones(3)))
    x = torch.ones(3)
    torch.testing.assert_close(exe(x, torch.full((3,), 2.0)), torch.full((3,), 6.0))
    torch.testing.assert_close(x, torch.full((3,), 3.0))


def test_an_argument_that_is_not_row_major():
    exe = pipeline.compile(Adds(), (torch.ones(3, 2), torch.ones(3, 2)))
    whole = torch.zeros(4, 6)
    exe(whole[:2, ::2].t(), torch.ones(3, 2))
    expected = torch.zeros(4, 6)
    expected[:2, ::2] = 1
    torch.testing.assert_close(whole, expected)


def test_an_argument_of_dynamic_size():
    n = Dim("n", max=64)
    exe = pipeline.compile(Adds(), (torch.ones(3), torch.ones(3)), dynamic_shapes=({0: n}, {0: n}))
    x = torch.ones(5)
    exe(x, torch.ones(5))
    torch.testing.assert_close(x, torch.full((5,), 2.0))


def test_a_numpy_argument():
    exe = pipeline.compile(Adds(), (torch.ones(3), torch.ones(3)))
    x = np.ones(3, np.float32)
    exe(x, np.ones(3, np.float32))
    np.testing.assert_array_equal(x, [2, 2, 2])


def test_an_argument_and_a_buffer_with_out():
    model = Counter()
    exe = pipeline.compile(model, (torch.ones(2, 3),))
    out = torch.empty(3)
    exe(torch.ones(2, 3), out=out)
    torch.testing.assert_close(out, torch.full((3,), 2.0))
    torch.testing.assert_close(model.total, torch.ones(2, 3))


def test_a_buffer_as_out_is_refused_or_right():
    """The code reads the buffer while it runs, so that it must not write the result there before it is done."""
    model = Counter()
    exe = pipeline.compile(model, (torch.ones(2, 3),))
    row = model.total[0]
    exe(torch.ones(2, 3), out=row)
    torch.testing.assert_close(row, torch.full((3,), 2.0))


@pytest.mark.parametrize(
    "alias", [lambda x: x, lambda x: x[1:4], lambda x: x.view(-1)[2:5]], ids=["same", "overlapping", "view"]
)
def test_a_mutated_argument_that_shares_memory_is_refused(alias):
    exe = pipeline.compile(Adds(), (torch.ones(3), torch.ones(3)))
    memory = torch.ones(5)
    other = alias(memory)[:3]
    with pytest.raises(ArgumentError, match="argument x: is written to and shares memory with argument y"):
        exe(memory[:3], other)
    torch.testing.assert_close(memory, torch.ones(5))


def test_neighbours_in_memory_are_fine():
    exe = pipeline.compile(Adds(), (torch.ones(3), torch.ones(3)))
    memory = torch.ones(6)
    exe(memory[:3], memory[3:])
    torch.testing.assert_close(memory, torch.tensor([2.0, 2, 2, 1, 1, 1]))


def test_an_expanded_argument_that_is_mutated_is_refused():
    exe = pipeline.compile(Adds(), (torch.ones(3), torch.ones(3)))
    with pytest.raises(
        ArgumentError, match="argument x: is written to, but has elements that share memory; pass a copy"
    ):
        exe(torch.ones(1).expand(3), torch.ones(3))


def test_a_read_only_array_that_is_mutated_is_refused():
    exe = pipeline.compile(Adds(), (torch.ones(3), torch.ones(3)))
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    with pytest.raises(ArgumentError, match="argument x: is written to, but is read-only"):
        exe(array, np.ones(3, np.float32))
    np.testing.assert_array_equal(exe(np.zeros(3, np.float32), array), [2, 2, 2])


def test_a_mutated_argument_that_is_a_weight_is_refused():
    class Shift(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.ones(3))

        def forward(self, x):
            x.add_(self.table)
            return x + self.table

    model = Shift()
    exe = pipeline.compile(model, (torch.ones(3),))
    with pytest.raises(ArgumentError, match="argument x: is written to and shares memory with weight table"):
        exe(model.table)
