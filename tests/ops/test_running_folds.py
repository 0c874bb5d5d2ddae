"""Sums, products and logarithms of sums of the elements so far, as exact as eager's over long lines."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch.export import Dim

import pipeline

FUNCTIONS = {
    "cumsum": lambda x, dim: torch.cumsum(x, dim),
    "cumprod": lambda x, dim: torch.cumprod(1 + x / 64, dim),
    "logcumsumexp": lambda x, dim: torch.logcumsumexp(x, dim),
}
DTYPES = ("float32", "bfloat16", "float16", "float64")


def worst(got, wanted):
    """The greatest error, in parts of 1 + what is wanted."""
    error = (got.double() - wanted).abs() / (1 + wanted.abs())
    return error.nan_to_num(0).max().item() if error.numel() else 0.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("shape", "dim"), [((3, 4001), -1), ((4001, 3), 0), ((2, 601, 5), 1), ((0, 3), 0), ((1,), 0)])
def test_as_exact_as_eager(name, dtype, shape, dim):
    kind = getattr(torch, dtype)
    # Multiples of 1/64 of less than 16: 1 + x / 64 is exact in all dtypes but for 16 bits, which round it both times.
    x = (torch.randn(shape, generator=torch.manual_seed(7)) * 64).round().div(64).to(kind)

    def function(x):
        return FUNCTIONS[name](x, dim)

    got, eager = pipeline.compile(Function(function), (x,))(x), function(x)
    wanted = function(x.double())
    assert got.dtype == eager.dtype
    assert got.shape == eager.shape
    assert worst(got, wanted) <= worst(eager, wanted) + torch.finfo(torch.float64).eps * 4 * shape[dim]


def test_a_long_line():
    x = torch.randn(100_000, generator=torch.manual_seed(1))
    got, wanted = pipeline.compile(Function(lambda x: x.cumsum(0)), (x,))(x), x.double().cumsum(0)
    assert worst(got, wanted) <= worst(x.cumsum(0), wanted) * 1.01


def test_strides_and_integers():
    x = torch.randn(7, 33).t()
    torch.testing.assert_close(pipeline.compile(Function(lambda x: x.cumsum(0)), (x,))(x), x.cumsum(0))
    whole = torch.arange(-50, 50).reshape(4, 25)
    assert torch.equal(pipeline.compile(Function(lambda x: x.cumsum(1)), (whole,))(whole), whole.cumsum(1))


#: Sizes and a dim across which rows lie; of rows that are parts of one length, of another, and of a vector and more.
ACROSS_ROWS = [((5, 8), 0), ((33, 17), 0), ((2, 3, 5, 40), 1), ((4, 7, 33), 1), ((6, 2080), 0), ((3, 1031), 0)]
ACROSS_ROWS += [((0, 16), 0), ((1, 16), 0), ((4, 0, 16), 1)]


@pytest.mark.parametrize("threads", [1, 2])
def test_across_rows(threads):
    """All shapes and functions of a dtype are one program."""

    def functions(*inputs):
        return [
            fold(x, dim)
            for x, (_, dim) in zip(inputs, ACROSS_ROWS, strict=True)
            for fold in (torch.cumsum, torch.cumprod)
        ]

    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.bool):
        generator = torch.Generator().manual_seed(3)
        inputs = [(torch.rand(shape, generator=generator) * 2 + 0.3).to(dtype) for shape, _ in ACROSS_ROWS]
        executable = pipeline.compile(Function(functions), tuple(inputs), num_threads=threads)
        for got, eager in zip(executable(*inputs), functions(*inputs), strict=True):
            torch.testing.assert_close(got, eager)


def test_across_rows_of_other_strides_and_symbolic_lengths():
    rows = Dim("rows", max=100)
    executable = pipeline.compile(
        Function(lambda x: x.cumsum(0)), (torch.randn(9, 24),), dynamic_shapes=(({0: rows},),)
    )
    for x in (
        torch.randn(9, 24),
        torch.randn(24, 41).t(),
        torch.randn(1, 24),
        torch.randn(0, 24),
        torch.randn(50, 48)[:, ::2],
    ):
        torch.testing.assert_close(executable(x), x.cumsum(0))
