"""Gathers of what is computed element by element compute only what they fetch; results are eager's."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import pipeline

#: Indices into tensors of [3, 5, 40].
PLACES = torch.arange(15).reshape(3, 5, 1) * 7 % 40
COLUMNS = torch.arange(3 * 40).reshape(3, 1, 40) * 3 % 5
ROWS, NONE = torch.tensor([2, 0]), torch.zeros(0, dtype=torch.int64)


def computed(x, row, column):
    """Of [3, 5, 40], a row of [40] and a column of [5, 1]; by ops that are each fetched from in turn."""
    y = (x * 2 + row).abs()
    return torch.where(y > 1, y - column, y * column)


#: What is fetched of a tensor of [3, 5, 40], and of reshapes of it.
FETCHES = {
    "gather in lines": lambda y: y.gather(2, PLACES),
    "gather across lines": lambda y: y.gather(1, COLUMNS),
    "gather from the end": lambda y: y.gather(-1, PLACES - 40 + 40),
    "rows": lambda y: y[ROWS],
    "select rows": lambda y: y.index_select(1, ROWS),
    "elements": lambda y: y[ROWS, ROWS + 1, ROWS * 9],
    "elements of a line": lambda y: y.flatten()[ROWS * 99],
    "lines of all": lambda y: y.flatten(0, 1).gather(1, PLACES.flatten(0, 1)),
    "lines of some": lambda y: y.flatten(0, 1)[ROWS + 9],
    "split": lambda y: y.unflatten(2, (8, 5))[:, ROWS, ROWS, ROWS],
    "split lines": lambda y: y.unflatten(2, (8, 5)).gather(4 - 1, PLACES[..., None].expand(3, 5, 8, 1) % 5),
    "transposed": lambda y: y.transpose(0, 2).gather(0, PLACES.transpose(0, 2)),
    "one dim more": lambda y: y[None].gather(3, PLACES[None]),
    "take": lambda y: y.take(ROWS * 100),
    "nothing": lambda y: y[:, NONE],
    "negative": lambda y: y[ROWS - 3],
    "diagonal": lambda y: y[:, torch.arange(5), torch.arange(5)],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64], ids=str)
def test_forms(dtype):
    def function(x, row, column):
        return [fetch(computed(x + number, row, column)) for number, fetch in enumerate(FETCHES.values())]

    torch.manual_seed(0)
    args = tuple((10 * torch.randn(shape)).to(dtype) for shape in ((3, 5, 40), (40,), (5, 1)))
    exe = pipeline.compile(function, args)
    for name, found, expected in zip(FETCHES, exe(*args), function(*args), strict=True):
        torch.testing.assert_close(found, expected, msg=lambda text, name=name: f"{name}: {text}")
    hoisted = [remark for remark in exe.remarks if remark.pass_name == "hoist-gathers"]
    assert len(hoisted) > 5 * len(FETCHES)


def test_symbolic_sizes():
    def function(x, labels):
        return (x.exp() + 1).log().gather(1, labels[:, None])

    batch = torch.export.Dim("batch", min=2)
    exe = pipeline.compile(function, (torch.randn(4, 30), torch.arange(4)), dynamic_shapes=({0: batch}, {0: batch}))
    for rows in (2, 7):
        args = torch.randn(rows, 30), torch.arange(rows) * 3
        torch.testing.assert_close(exe(*args), function(*args))
    assert any(remark.pass_name == "hoist-gathers" for remark in exe.remarks)


def test_what_stays():
    """More is fetched than computed; or what it is computed of would be stored for the gather alone."""
    weight = torch.randn(16, 16)

    def function(x, rows):
        many = x.exp()[rows]
        kept = ((x @ weight) * 2).tanh()
        return many, kept, kept[rows[:2], rows[2:4]]

    args = torch.randn(16, 16), torch.arange(64) % 16
    exe = pipeline.compile(function, args)
    torch.testing.assert_close(exe(*args), function(*args))
    assert not [remark for remark in exe.remarks if remark.pass_name == "hoist-gathers"]


@pytest.mark.parametrize("shape", [(6, 50), (2, 50, 3, 4), (50,), (1, 1), (3, 7, 50), (512, 999)], ids=str)
def test_cross_entropy_is_one_kernel(shape):
    """From logits to the loss nothing of the logits' size is written."""
    classes = shape[min(1, len(shape) - 1)]
    logits = torch.randn(shape)
    labels = torch.randint(classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    exe = pipeline.compile(F.cross_entropy, (logits, labels))
    torch.testing.assert_close(exe(logits, labels), F.cross_entropy(logits, labels))
    assert exe.memory.workspace < max(logits.nbytes, 4096)


class Scaled(nn.Module):
    """An embedding whose table is computed of another weight, which changes."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(100, 8))

    def forward(self, rows, scale):
        return F.embedding(rows, self.table * scale)


def test_a_table_that_is_computed():
    args = torch.tensor([[3, 99, 3]]), torch.rand(8)
    model = Scaled()
    exe = pipeline.compile(model, args)
    torch.testing.assert_close(exe(*args), model(*args))
    assert exe.memory.workspace < model.table.nbytes
