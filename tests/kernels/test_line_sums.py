"""Sums of lines of a matrix, some lines at a time: as exact as eager, with all that stands around them."""

from __future__ import annotations

import math

import pytest
import torch
from function_model import Function
from host import VECTOR_BYTES

import pipeline

CHOSEN = "lines at a time"


def compiled(function, *args, **options):
    executable = pipeline.compile(Function(function), args, **options)
    assert any(CHOSEN in remark.reason for remark in executable.remarks)
    return executable


def check(function, *args, **options):
    """Compares what is added up line after line with float64; eager judges where that is not exact either."""
    results = compiled(function, *args, **options)(*args)
    exact, eager = function(*[arg.double() for arg in args]), function(*args)
    wide = args[0].dtype == torch.float64
    least = (1e-13 if wide else 4e-7) * float(exact.abs().max())
    error, of_eager = ((each.double() - exact).abs().max().item() for each in (results, eager))
    assert error <= max(least, 1.5 * of_eager), (error, of_eager)


SHAPES = [(128, 2048), (2928, 300), (1025, 257), (1500, 511), (1031, 4099), (17, 33000), (600, 128), (4097, 129)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_row_times_a_matrix(shape, dtype):
    """Of sizes that fill tiles, blocks and groups of lines, and that leave rests."""
    torch.manual_seed(0)
    matrix = torch.randn(*shape, dtype=dtype)
    check(lambda x, w: x @ w, torch.randn(1, shape[0], dtype=dtype), matrix, num_threads=1)
    check(lambda m: m.sum(0), matrix, num_threads=1)


@pytest.mark.parametrize("fold", ["sum", "amax", "amin", "mean"])
@pytest.mark.parametrize("dim", [0, 1])
def test_folds(fold, dim):
    """What is folded is no matter; batches, too."""
    torch.manual_seed(0)
    check(lambda t: getattr(t, fold)(dim), torch.randn(40, 130, 200) if dim else torch.randn(2000, 3, 200))


def test_batches_of_rows():
    """Each row has a matrix of its own."""
    torch.manual_seed(0)
    check(lambda a, b: a.mT @ b, torch.randn(8, 128, 1), torch.randn(8, 128, 2000))


def test_what_stands_around():
    """Epilogues run once, behind the last lines; a product is added to what was there."""
    torch.manual_seed(0)
    x, w, y = torch.randn(1, 1300), torch.randn(1300, 1000), torch.randn(1, 1000)
    check(lambda x, w, y: torch.tanh((x @ w) * 0.02 + y), x, w, y)
    check(lambda x, w, y: torch.addmm(y, x, w, beta=2.0), x, w, y)
    check(lambda w: torch.relu(w.sum(0) - 3), w)


def test_columns_apart():
    """Lines lie apart from each other by more than they are long."""
    torch.manual_seed(0)
    m = torch.randn(1300, 1024)[:, :1000]
    check(lambda m: m.sum(0), m)


def test_numbers_that_are_none_stay_in_their_columns():
    """NaN and inf: in an edge, in a block, in the first and in the last lines."""
    m = torch.ones(1100, 600)
    m[0, 3], m[1099, 599], m[555, 300] = math.nan, math.inf, -math.inf
    for function in (lambda m: m.sum(0), lambda m: m.amax(0)):
        result = compiled(function, m)(m)
        torch.testing.assert_close(result, function(m), equal_nan=True)


def test_many_lines_of_numbers_that_add_up():
    """A chain of additions of all parts would be off by three times as much as is allowed."""
    torch.manual_seed(0)
    m = torch.rand(200_000, 130)
    exact = m.double().sum(0)
    assert float((compiled(lambda m: m.sum(0), m)(m) - exact).abs().max() / exact.max()) < 1e-6


@pytest.mark.parametrize("lines", [0, 1, 7, 8, 9, 511, 512, 513, 1200])
def test_a_number_of_lines_that_is_not_known(lines):
    """One program for all, none included."""
    torch.manual_seed(0)
    shape = {0: torch.export.Dim("lines", min=0, max=4000)}
    example = torch.randn(1030, 300)
    executable = compiled(lambda m: m.sum(0) + 1, example, dynamic_shapes=((shape,),))
    m = torch.randn(lines, 300)
    torch.testing.assert_close(executable(m).double(), m.double().sum(0) + 1, rtol=1e-6, atol=2e-5)


def test_bits_are_the_same_on_more_threads():
    """Blocks of columns are shared."""
    torch.manual_seed(0)
    m = torch.randn(2000, 3000)
    executable = pipeline.compile(Function(lambda m: m.sum(0)), (m,))
    results = []
    for executable.num_threads in (1, 2, 3):
        results.append(executable(m))
    assert any("shared by threads" in remark.reason for remark in executable.remarks)
    assert all(torch.equal(result, results[0]) for result in results)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda m: m.sum(1), id="lines are what is added up"),
        pytest.param(lambda m: m[:100, :100].sum(0), id="small"),
        pytest.param(lambda m: torch.ones(8, 2000) @ m, id="rows share lines"),
    ],
)
def test_must_not_fire(function):
    m = torch.randn(2000, 600)
    executable = pipeline.compile(Function(function), (m,))
    assert not any(CHOSEN in remark.reason for remark in executable.remarks)
    torch.testing.assert_close(executable(m), function(m), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(384, 5001), (2048, 1000), (769, 2305), (4096, 1001), (128, 40_009)], ids=str)
def test_panels_of_weights_are_read_as_they_lie(shape, dtype):
    """Lines of a panel lie side by side, also where the last panel is not full: GPT-2's and Whisper's logits."""
    torch.manual_seed(0)
    model = torch.nn.Linear(*shape).to(dtype).eval().requires_grad_(False)
    x = torch.randn(1, shape[0], dtype=dtype)
    executable = pipeline.compile(model, (x,))
    panels = f"panels of {2 * VECTOR_BYTES // 4} columns"
    assert any(panels in remark.reason for remark in executable.remarks) or dtype == torch.float64
    assert not any(CHOSEN in remark.reason for remark in executable.remarks)
    exact = torch.nn.functional.linear(x.double(), model.weight.double(), model.bias.double())
    error, of_eager = ((found.double() - exact).abs().max().item() for found in (executable(x), model(x)))
    least = (1e-13 if dtype == torch.float64 else 1e-6) * float(exact.abs().max())
    assert error <= max(least, 2 * of_eager)
