"""Tensors without elements, whose other sizes are symbolic: sums, products and parts of arguments' sizes."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch.export import Dim

import pipeline

#: Of x: [0] and y: [s].
FORMS = {
    "argument's": lambda x, y: x[:, None] * y,
    "part's": lambda x, y: x[:, None] * y[1::2] + 1,
    "sum": lambda x, y: torch.cat([x[:, None] * y[1::2], x[:, None] * y], 1),
    "number more": lambda x, y: torch.cat([x[:, None] * y, x[:, None].expand(-1, 3)], 1),
    "product": lambda x, y: (x[:, None, None] * y[:, None] * y).reshape(0, y.shape[0] * y.shape[0]),
    "twice": lambda x, y: (x[:, None, None] * y[:, None] * y[:2]).flatten(1),
    "outer product": lambda x, y: x[:, None] @ y[None],
    "nothing summed": lambda x, y: y[:, None].expand(-1, 0) @ x[:, None].expand(-1, 4),
    "sorted": lambda x, y: (x[:, None] * y).sort(1),
    "largest": lambda x, y: (x[:, None] * y).amax(1),
    "convolution": lambda x, y: torch.nn.functional.conv1d((x[:, None] * y)[:, None], torch.ones(2, 1, 3), padding=1),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_results_have_eagers_sizes(form):
    model, x = Function(form), torch.zeros(0)
    executable = pipeline.compile(model, (x, torch.ones(6)), dynamic_shapes=(({}, {0: Dim.AUTO}),))
    for size in (4, 5, 6, 9):
        y = torch.randn(size)
        results, expected = executable(x, y), model(x, y)
        for mine, theirs in zip(*(v if isinstance(v, tuple) else (v,) for v in (results, expected)), strict=True):
            assert mine.dtype == theirs.dtype and torch.equal(mine, theirs)


def test_as_many_rows_as_the_data_says():
    executable = pipeline.compile(Function(torch.nonzero), (torch.tensor(1.0),))
    for number in (0.0, 2.0):
        assert torch.equal(executable(torch.tensor(number)), torch.nonzero(torch.tensor(number)))


def test_nonzero_static_of_a_number():
    model = Function(lambda x: torch.nonzero_static(x, size=3))
    assert torch.equal(pipeline.compile(model, (torch.tensor(1.0),))(torch.tensor(1.0)), model(torch.tensor(1.0)))


OVER_NOTHING = {
    "all": lambda x: x.all(),
    "any of rows": lambda x: x.any(1),
    "sum of rows": lambda x: x.sum(1),
    "product": lambda x: x.prod(),
    "mean": lambda x: x.float().mean(1),
    "logsumexp": lambda x: x.float().logsumexp(1),
    "variance": lambda x: x.float().var(1),
    "counted": lambda x: torch.count_nonzero(x),
    "by itself": lambda x: x @ x.T,
    "padded": lambda x: torch.nn.functional.pad(x, (1, 1), value=1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_sums_over_nothing(dtype):
    """With each op in a kernel of its own, beside the same sums of zeros that are there."""
    forms = {name: form for name, form in OVER_NOTHING.items() if dtype != torch.bool or name != "by itself"}
    empty, zeros = torch.zeros(5, 0).to(dtype), torch.zeros(5, 2).to(dtype)

    def program(x, y):
        return [form(one) for form in forms.values() for one in (x, y * 0)]

    executable = pipeline.compile(program, (empty, zeros), fusion_rules=pipeline.load_rules("cpu").apart())
    for mine, theirs in zip(executable(empty, zeros), program(empty, zeros), strict=True):
        torch.testing.assert_close(mine, theirs, equal_nan=True)
