"""Products of large matrices in blocks of terms and of rows: as exact as eager, with all that stands around them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from host import VECTOR_BYTES
from torch.export import Dim

import pipeline

#: Blocks have fewer columns where vectors are short, and so many more terms.
LONGER = 64 // VECTOR_BYTES


def blocks(executable) -> list[str]:
    """What the remarks say of blocks."""
    return [remark.reason.split(" in ")[1] for remark in executable.remarks if "in blocks of" in remark.reason]


def compiled(function, *args, **options):
    """An executable whose weights are arguments, so that nothing lies in panels; its results are compared."""
    executable = pipeline.compile(Function(function), args, **options)
    compare(executable, function, *args)
    return executable


def compare(executable, function, *args):
    """With float64; sums are of about a thousand terms, of numbers whose products are small."""
    exact = function(*[arg.double() for arg in args])
    close = {"rtol": 1e-12, "atol": 1e-12} if args[0].dtype == torch.float64 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(executable(*args), exact, check_dtype=False, equal_nan=True, **close)


def factors(rows: int, terms: int, columns: int, dtype=torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(rows, terms, dtype=dtype), torch.randn(terms, columns, dtype=dtype) / terms**0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("rows", "terms", "columns"), [(64, 1000, 96), (57, 3001, 33), (130, 2304, 257), (47, 1537, 640)]
)
def test_long_sums(rows, terms, columns, dtype):
    """Of sizes that fill tiles and blocks, and that leave rests of rows, terms and columns."""
    assert "terms" in blocks(compiled(torch.matmul, *factors(rows, LONGER * terms, columns, dtype)))[0]


@pytest.mark.parametrize(("rows", "terms", "columns"), [(2100, 300, 70), (1801, 512, 64), (1030, 1555, 65)])
def test_many_rows(rows, terms, columns):
    assert "rows" in blocks(compiled(torch.matmul, *factors(rows, terms, columns)))[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("rows", "terms", "columns"), [(4, 700, 400), (7, 301, 1001), (33, 96, 3000), (50, 97, 2777), (9, 1024, 513)]
)
def test_lines_far_apart(rows, terms, columns, dtype):
    """The last block of terms, rows and columns may be a rest, or there may be one block of terms alone."""
    executable = compiled(torch.matmul, *factors(rows, terms, columns, dtype))
    assert any("with prefetches" in remark.reason for remark in executable.remarks)


def test_lines_far_apart_of_batches_and_of_any_number_of_rows():
    x, y = factors(30, 400, 800)
    executable = compiled(torch.matmul, torch.stack((x, x * 2)), torch.stack((y, y * 3)), num_threads=2)
    assert any("with prefetches" in remark.reason for remark in executable.remarks)
    shapes = ({0: Dim("rows", max=4096)}, None)
    executable = pipeline.compile(Function(torch.matmul), (x, y), dynamic_shapes=(shapes,))
    assert any("with prefetches" in remark.reason for remark in executable.remarks)
    for rows in (0, 1, 5, 64):
        compare(executable, torch.matmul, *factors(rows, 400, 800))


AROUND = {
    "bias and activation": lambda x, y, r: F.gelu(x @ y + r[0]),
    "residual": lambda x, y, r: r + x @ y,
    "residual in its place": lambda x, y, r: (r * 2).add_(x @ y).relu_(),
    "added to": lambda x, y, r: torch.addmm(r, x, y, beta=0.5, alpha=2),
    "two results": lambda x, y, r: (x @ y, torch.tanh(x @ y) + r),
    "turned": lambda x, y, r: (x @ y + r).t().contiguous(),
    "turned operands": lambda x, y, r: (x.t().contiguous().t() @ y.t().contiguous().t()) * r,
    "batches": lambda x, y, r: (torch.stack((x, x * 2)) @ torch.stack((y, y * 3))).relu() + r,
    "heads": lambda x, y, r: (x @ y).view(40, 3, -1).transpose(0, 1) + 1,
    "cut": lambda x, y, r: (x @ y)[1:, ::2] * 2,
}


@pytest.mark.parametrize(("name", "threads"), [(name, 1 + number % 2) for number, name in enumerate(AROUND)])
def test_what_stands_around_them(name, threads):
    assert blocks(compiled(AROUND[name], *factors(40, LONGER * 1201, 99), torch.randn(40, 99), num_threads=threads))


def test_any_number_of_rows():
    shapes = ({0: Dim("rows", max=4096)}, None)
    executable = pipeline.compile(Function(torch.matmul), factors(50, LONGER * 1100, 70), dynamic_shapes=(shapes,))
    assert "terms" in blocks(executable)[0]
    for rows in (0, 1, 7, 33, 200):
        compare(executable, torch.matmul, *factors(rows, LONGER * 1100, 70))


def test_must_not_fire():
    """For few rows, short sums, columns that lie in a panel, weights in panels, and integers."""
    x, y = factors(60, 1200, 70)
    assert not blocks(compiled(torch.matmul, x[:8], y))
    assert not blocks(compiled(torch.matmul, x[:, :600].contiguous(), y[:600]))
    assert not blocks(compiled(torch.matmul, x, y[:, :32].contiguous()))
    assert not blocks(pipeline.compile(torch.nn.Linear(1200, 64), (x,)))
    whole = torch.randint(-9, 9, (60, 1200)), torch.randint(-9, 9, (1200, 70))
    assert not blocks(pipeline.compile(Function(torch.matmul), whole))


def test_what_is_not_finite_in_one_block_stays_so_in_the_next():
    x, y = factors(40, LONGER * 1201, 99)
    x[3, 5], x[4, 1200], y[800, 7] = torch.inf, -torch.inf, torch.nan
    assert blocks(compiled(torch.matmul, x, y))
