"""A vector times a matrix that is read along its lines."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from tables import results_of

import pipeline

CASES = {
    "gemv": (lambda x, w: x @ w.t(), (1, None), (5, None)),
    "few rows": (lambda x, w: x @ w.t(), (3, None), (5, None)),
    "few rows of batches": (lambda x, w: x @ w.transpose(-1, -2), (2, 4, None), (2, 19, None)),
    "batches": (lambda x, w: x @ w.transpose(-1, -2), (3, 1, None), (3, 7, None)),
    "column": (lambda x, w: w @ x.t(), (1, None), (5, None)),
    "column as it lies": (lambda x, w: w @ x, (None, 1), (33, None)),
    "transposed matrix, column": (lambda x, w: w.t() @ x, (None, 1), (None, 37)),
    "transposed, bias, column": (lambda x, w: torch.relu(w.t() @ x + 1) * 2, (None, 1), (None, 37)),
    "batches of columns": (lambda x, w: w.mT @ x, (3, None, 1), (3, None, 18)),
    "bias and relu": (lambda x, w: torch.relu(x @ w.t() + 1), (1, None), (33, None)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize("name", CASES)
def test_products(name, dtype):
    function, *shapes = CASES[name]
    operands = {
        length: tuple(
            (torch.randn([length if n is None else n for n in shape]) * 9).to(getattr(torch, dtype)) for shape in shapes
        )
        for length in (1, 15, 16, 17, 200)
    }
    results = results_of({str(length): (function, pair) for length, pair in operands.items()})
    for (length, (x, w)), result in zip(operands.items(), results.values(), strict=True):
        if dtype == "int64":
            assert torch.equal(result, function(x, w)), length
            continue
        expected = function(x.double(), w.double())
        bound = (length + 2) * torch.finfo(result.dtype).eps * (function(x.double().abs(), w.double().abs()) + 1)
        assert ((result.double() - expected).abs() <= bound).all(), length


def test_the_matrix_is_not_copied():
    x, w = torch.randn(1, 64), torch.randn(300, 64)
    exe = pipeline.compile(Function(lambda x, w: x @ w.t()), (x, w))
    assert exe.memory.workspace == 0
    exe = pipeline.compile(Function(lambda x, w: w.t() @ x), (torch.randn(300, 1), w))
    assert exe.memory.workspace == 0
    exe = pipeline.compile(Function(lambda x, w: x @ w.t()), (x.repeat(4, 1), w))
    assert exe.memory.workspace == 0
    exe = pipeline.compile(Function(lambda x, w: x @ w.t()), (x.expand(40, 64), w))
    assert exe.memory.workspace > 0
