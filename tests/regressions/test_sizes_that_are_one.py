"""A part whose size is 1 with the example's sizes is repeated, which no other size would be: it read foreign memory."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from torch.export import Dim

import pipeline


def part(y):
    """1 element of 3 or 4."""
    return y[0:-2:2]


#: Of vectors, whose second one has 4 elements in the example.
FORMS = {
    "where": lambda x, y: torch.where(x > 0, x, part(y)),
    "add": lambda x, y: x + part(y),
    "both are parts": lambda x, y: x[1::3] + y[:-3],
    "columns": lambda x, y: x[None] + part(y)[:, None],
    "rows": lambda x, y: x.expand(3, -1) + part(y)[None],
    "expand": lambda x, y: part(y).expand(x.shape[0]) * 1,
    "expand to a number": lambda x, y: part(y).expand(7) + x.sum(),
    "broadcast_tensors": lambda x, y: torch.broadcast_tensors(x, part(y))[1] + 1,
    "batches of products": lambda x, y: x[:, None, None] @ part(y)[:, None, None],
    "lerp": lambda x, y: torch.lerp(x, part(y), 0.5),
    "addcmul": lambda x, y: torch.addcmul(x, part(y), part(y)),
    "bias": lambda x, y: torch.addmm(part(y), x[:, None], x[None, :]),
    "in place": lambda x, y: x.clone().mul_(part(y)),
    "copy": lambda x, y: x.clone().copy_(part(y)),
    "masked_fill": lambda x, y: x.masked_fill(part(y) > 0, 2.0),
    "index_put": lambda x, y: torch.index_put(x, (torch.arange(x.shape[0]),), part(y)),
    "concatenation": lambda x, y: torch.cat([x[None], part(y)[:, None].expand(-1, x.shape[0])]),
    "chunk": lambda x, y: x + torch.chunk(y, 4)[1],
    "unfold": lambda x, y: x[:, None] + y.unfold(0, 3, 3),
    "pool": lambda x, y: x + F.max_pool1d(y[None], 3)[0],
    "convolution": lambda x, y: x + F.conv1d(y[None, None], torch.ones(1, 1, 3), stride=3)[0, 0],
    "resize": lambda x, y: x + F.interpolate(y[None, None], scale_factor=0.3)[0, 0],
    "mask": lambda x, y: F.scaled_dot_product_attention(x[None, :, None], x[None, :, None], x[None, :, None], part(y)),
    "range": lambda x, y: x + torch.arange((y.shape[0] - 1) // 2),
    "comparison": lambda x, y: (x > 0) & (part(y) > 0),
    "stop": lambda x, y: x + y[: x.shape[0] // 5],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_it_is_repeated_or_the_call_is_refused(form):
    model, draw = Function(form), torch.Generator().manual_seed(0)
    example = (torch.randn(5, generator=draw), torch.randn(4, generator=draw))
    executable = pipeline.compile(model, example, dynamic_shapes=(({0: Dim.AUTO}, {0: Dim.AUTO}),))
    assert torch.allclose(executable(*example), model(*example), atol=1e-6)
    for sizes in itertools.product(range(8), range(8)):
        x, y = (torch.randn(size, generator=draw) for size in sizes)
        try:
            expected = model(x, y)
        except (RuntimeError, IndexError):
            with pytest.raises(pipeline.PipelineError):
                executable(x, y)
            continue
        try:
            result = executable(x, y)
        except pipeline.ArgumentError as error:
            assert sizes != (5, 4) and ("captured for" in str(error) or "expected" in str(error))
            continue
        assert result.shape == expected.shape and torch.allclose(result, expected, atol=1e-6), sizes


def test_other_sizes_of_which_it_is_one_too():
    model = Function(FORMS["add"])
    shapes = (({0: Dim.AUTO}, {0: Dim.AUTO}),)
    executable = pipeline.compile(model, (torch.randn(5), torch.randn(4)), dynamic_shapes=shapes)
    for size in range(9):
        x, y = torch.randn(size), torch.randn(3)
        assert torch.equal(executable(x, y), model(x, y))
    with pytest.raises(pipeline.ArgumentError, match="test_sizes_that_are_one.py"):
        executable(torch.randn(1), torch.randn(2))


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_diagonal_of_one_element_is_none_of_no_rows(offset):
    model = Function(lambda x: x.cumsum(1).diagonal(offset) + 1)
    for rows in (1, 3):
        executable = pipeline.compile(model, (torch.ones(rows, 4),), dynamic_shapes=(({1: Dim.AUTO},),))
        for size in range(6):
            x = torch.arange(float(rows * size)).reshape(rows, size)
            try:
                result = executable(x)
            except pipeline.ArgumentError as error:
                assert size < 2 and "test_sizes_that_are_one.py" in str(error)
                continue
            assert torch.equal(result, model(x))
