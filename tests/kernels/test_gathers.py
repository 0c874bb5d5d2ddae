"""Gathers of rows: the same elements as eager's, whatever is fused with them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline


def by_rows(exe):
    return any(remark.pass_name == "gathers-to-rows" for remark in exe.remarks)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int8", "bool"])
@pytest.mark.parametrize("width", [8, 17, 64, 100])
def test_embedding(dtype, width):
    table, indices = (torch.randn(30, width) * 9).to(getattr(torch, dtype)), torch.randint(0, 30, (3, 5))
    exe = pipeline.compile(Function(lambda t, i: F.embedding(i, t)), (table, indices))
    assert torch.equal(exe(table, indices), F.embedding(indices, table))
    assert by_rows(exe)


def test_with_what_comes_before_and_after():
    def function(table, indices, scale, position):
        return torch.relu(F.embedding(indices + 1, table.double().float()) * scale[:, None] + position)

    args = torch.randn(30, 33), torch.randint(0, 29, (7,)), torch.randn(7), torch.randn(33)
    exe = pipeline.compile(Function(function), args)
    torch.testing.assert_close(exe(*args), function(*args))
    assert by_rows(exe)


def test_two_tables():
    def function(a, b, i, j):
        return F.embedding(i, a) + F.embedding(j, b)

    args = torch.randn(30, 24), torch.randn(11, 24), torch.randint(0, 30, (2, 6)), torch.randint(0, 11, (2, 6))
    exe = pipeline.compile(Function(function), args)
    assert torch.equal(exe(*args), function(*args))
    assert by_rows(exe)


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_sizes_that_change(rows):
    number = torch.export.Dim("number", min=0, max=64)
    table = torch.randn(30, 40)
    exe = pipeline.compile(
        Function(lambda t, i: F.embedding(i, t)), (table, torch.arange(5)), dynamic_shapes=((None, {0: number}),)
    )
    indices = torch.randint(0, 30, (rows,))
    assert torch.equal(exe(table, indices), table[indices])
    assert by_rows(exe)


def test_an_index_out_of_range_is_an_error():
    table = torch.randn(30, 40)
    exe = pipeline.compile(Function(lambda t, i: F.embedding(i, t)), (table, torch.arange(5)))
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        exe(table, torch.tensor([1, 2, 30, 4, 5]))
    assert torch.equal(exe(table, torch.arange(5)), table[:5])


@pytest.mark.parametrize(
    "function",
    [
        lambda t, i: t.index_select(0, i),
        lambda t, i: t[i],
        lambda t, i: t[:, i],
        lambda t, i: t[i, i],
        lambda t, i: t.gather(0, i[:, None].expand(5, 24)),
        lambda t, i: t.flip(1),
        lambda t, i: t.roll(3, 1)[i],
    ],
    ids=["index_select", "rows", "columns", "pairs", "gather", "flip", "rolled"],
)
def test_ways_to_gather(function):
    table, indices = torch.randn(24, 24), torch.tensor([3, 0, 23, 3, 7])
    exe = pipeline.compile(Function(function), (table, indices))
    assert torch.equal(exe(table, indices), function(table, indices))
