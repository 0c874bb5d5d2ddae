"""The first few elements of sorted lines: selected, and the same as eager's, ties and NaN included."""

from __future__ import annotations

import pytest
import torch
from function_model import Function

import pipeline

LINE = [1, float("nan"), 2, float("inf"), -1, float("nan"), 0.0, -0.0, 5, 3, 3, 3, 2, 1, 7, 8, 5, 5, 5, 5]

FUNCTIONS = {
    "topk": lambda x: x.topk(4),
    "topk smallest": lambda x: x.topk(3, largest=False),
    "topk 1": lambda x: x.topk(1),
    "topk of columns": lambda x: tuple(part.t() for part in x.t().contiguous().topk(2, dim=0)),
    "sort": lambda x: tuple(part[:, :4] for part in x.sort(dim=-1, stable=True)),
    "sort descending": lambda x: tuple(part[:, :2] for part in x.sort(dim=-1, stable=True, descending=True)),
    "values alone": lambda x: (x.sort(dim=-1)[0][:, :3],),
}


def compiled(function, x):
    exe = pipeline.compile(Function(function), (x,))
    return exe, exe(x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8", "int8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_places(name, dtype):
    kind = getattr(torch, dtype)
    line = torch.tensor([LINE])
    for x in (line if kind.is_floating_point else line.nan_to_num(9, 11), torch.randn(5, 37) * 20, torch.randn(3, 300)):
        x = x.to(kind)
        _, results = compiled(FUNCTIONS[name], x)
        expected = FUNCTIONS[name](x)
        torch.testing.assert_close(results[0], expected[0], equal_nan=True, rtol=0, atol=0)
        if len(expected) > 1:  # which of several equal ones topk gives is its own affair
            torch.testing.assert_close(x.gather(1, results[1]), expected[0], equal_nan=True, rtol=0, atol=0)
        if name.startswith("sort"):
            assert torch.equal(results[1], expected[1])


def test_a_selection_keeps_only_what_is_read():
    exe, _ = compiled(FUNCTIONS["topk"], torch.randn(5, 400))
    assert exe.memory.workspace < 5 * 400 * 4


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.topk(120),
        lambda x: (x.sort(-1)[0][:, 3:5],),
        lambda x: (x.sort(-1)[0][:, ::9],),
    ],
    ids=["many", "from the middle", "steps"],
)
def test_must_not_fire(function):
    x = torch.randn(5, 400)
    exe, results = compiled(function, x)
    assert torch.equal(results[0], function(x)[0])
    assert exe.memory.workspace >= 5 * 400 * 4


@pytest.mark.parametrize("shape", [(0, 40), (1, 40), (2, 0, 40)], ids=str)
def test_few_lines(shape):
    x = torch.randn(shape)
    _, results = compiled(lambda x: x.topk(3), x)
    for result, expected in zip(results, x.topk(3), strict=True):
        assert torch.equal(result, expected)


ONE_LINE = {
    "topk": (lambda x: x.topk(3), "sort"),
    "sort": (lambda x: x.sort(stable=True), "sort"),
    "scatter": (lambda x: (x.flatten().index_put((torch.tensor([3]),), x.flatten()[:1]),), "scatter"),
}


@pytest.mark.parametrize("shape", [(40,), (1, 40), (1, 1, 40), (1, 3, 40)], ids=str)
@pytest.mark.parametrize("name", ONE_LINE)
def test_loops_of_one_iteration_are_kernels(name, shape):
    function, kind = ONE_LINE[name]
    x = torch.randn(shape, generator=torch.manual_seed(4))
    exe, results = compiled(function, x)
    assert kind in [kernel.kind for kernel in exe.kernels]
    for result, expected in zip(results, function(x), strict=True):
        torch.testing.assert_close(result, expected)
