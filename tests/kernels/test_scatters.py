"""Scatters of rows: written a row at a time, in the order of the indices, and nowhere else."""

from __future__ import annotations

import pytest
import torch
from function_model import Function

import pipeline

INDICES = torch.tensor([3, 0, 3, -1, 6])


def index_add(x, i, u):
    return x.index_add(0, i.remainder(7), u)


def index_put(x, i, u):
    y = x.clone()
    y[i[1:4]] = u[1:4]
    return y


def accumulate(x, i, u):
    return x.index_put((i,), u, accumulate=True)


def index_copy(x, i, u):
    return x.index_copy(0, i[2:].remainder(6), u[2:])


def cache(x, i, u):
    """One position of a cache of keys, by heads."""
    heads = x.reshape(1, 7, -1, 8).transpose(1, 2).clone()
    heads[:, :, i[:1]] = u[:1].reshape(1, 1, -1, 8).transpose(1, 2)
    return heads


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("shape", [(7, 16), (7, 33), (7, 3), (7, 2, 16), (7, 0)], ids=str)
@pytest.mark.parametrize("function", [index_add, index_put, accumulate, index_copy], ids=lambda one: one.__name__)
def test_rows(function, shape, dtype):
    kind = getattr(torch, dtype)
    x, u = (torch.randint(-9, 9, (rows, *shape[1:])).to(kind) for rows in (7, 5))
    assert torch.equal(pipeline.compile(Function(function), (x, INDICES, u))(x, INDICES, u), function(x, INDICES, u))


def test_a_cache():
    x, u = torch.randn(7, 48), torch.randn(5, 48)
    assert torch.equal(pipeline.compile(Function(cache), (x, INDICES, u))(x, INDICES, u), cache(x, INDICES, u))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("accumulates", [True, False])
def test_no_updates(accumulates, dtype):
    """Known to be none, and none in one call of many; torch-mlir divided by their number."""
    x, none, u = torch.arange(21).view(7, 3).to(getattr(torch, dtype)), INDICES[:0], torch.ones(5, 3)

    def put(x, i, u):
        return x.index_put((i,), u.to(x.dtype), accumulate=accumulates)

    assert torch.equal(pipeline.compile(Function(put), (x, none, u[:0]))(x, none, u[:0]), x)
    number = torch.export.Dim("number", min=0, max=64)
    exe = pipeline.compile(Function(put), (x, INDICES, u), dynamic_shapes=((None, {0: number}, {0: number}),))
    assert torch.equal(exe(x, none, u[:0]), x)
    assert torch.equal(exe(x, INDICES, u), put(x, INDICES, u))


def test_an_index_out_of_range_writes_nothing_and_is_an_error():
    x, u = torch.randn(7, 16), torch.randn(5, 16)
    exe = pipeline.compile(Function(accumulate), (x, INDICES, u))
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        exe(x, INDICES + 1, u)
    torch.testing.assert_close(exe(x, INDICES, u), accumulate(x, INDICES, u))
