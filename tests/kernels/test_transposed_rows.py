"""Products whose rows lie as columns: with few columns they read them there, against eager and float64."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch.export import Dim

import pipeline

FUNCTIONS = {
    "rows": lambda x, w: x.t() @ w,
    "both": lambda x, w: x.t() @ w.t().contiguous().t(),
    "epilogue": lambda x, w: torch.relu(x.t() @ w + 1) * 2,
    "batches": lambda x, w: torch.stack((x, x + 1)).transpose(1, 2) @ torch.stack((w, w * 2)),
    "copy that is a result": lambda x, w: (x.t().contiguous(), x.t().contiguous() @ w),
}


def read_there(exe) -> bool:
    """Whether a product reads rows as they lie."""
    return any(one.pass_name == "read-transposed-rows" and one.kind == "passed" for one in exe.remarks)


def check(exe, function, *args):
    close = {"atol": 1e-12, "rtol": 1e-12} if args[0].dtype == torch.float64 else {"atol": 1e-4, "rtol": 1e-5}
    exact = function(*(one.double() for one in args))
    torch.testing.assert_close(exe(*args), exact, check_dtype=False, **close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 3, 2), (33, 1, 16), (130, 67, 17), (9, 300, 47)])
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_few_columns(function, rows, terms, columns, dtype):
    torch.manual_seed(0)
    args = torch.randn(terms, rows, dtype=dtype), torch.randn(terms, columns, dtype=dtype)
    exe = pipeline.compile(Function(function), args)
    assert read_there(exe) or rows == 1 or terms == 1
    check(exe, function, *args)


def test_any_number_of_rows():
    function, w = FUNCTIONS["rows"], torch.randn(40, 8)
    exe = pipeline.compile(Function(function), (torch.randn(40, 9), w), dynamic_shapes=(({1: Dim("n", max=99)}, None),))
    assert read_there(exe)
    for rows in (0, 1, 8, 77):
        check(exe, function, torch.randn(40, rows), w)


def test_must_not_fire():
    """Of many columns, and in 16 bits."""
    x = torch.randn(64, 33)
    assert not read_there(pipeline.compile(Function(FUNCTIONS["rows"]), (x, torch.randn(64, 48))))
    halves = x.bfloat16(), torch.randn(64, 8).bfloat16()
    assert not read_there(pipeline.compile(Function(FUNCTIONS["rows"]), halves))
