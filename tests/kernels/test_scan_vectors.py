"""Running sums and products by vectors, across rows and along lines: edges of vectors, of parts, of groups of rows."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

import pipeline

LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 65, 259)
SHAPES = {
    "line": [((length,), 0) for length in LENGTHS],
    "lines": [((3, length), 1) for length in LENGTHS],
    "rows": [((rows, 9), 0) for rows in (0, 1, 2, 3, 4, 5, 8, 11)],
    "columns": [((5, columns), 0) for columns in (*LENGTHS, 1023, 1024, 1025, 2049)],
    "planes": [((2, 6, columns), 1) for columns in (1, 3, 8, 17)] + [((6, 2, 3, 4), 0), ((2, 3, 5, 4), 2)],
}
DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32)


def reasons(executable):
    return [remark.reason for remark in executable.remarks if remark.pass_name == "vectorize-scans"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", SHAPES)
def test_edges(kind, threads):
    """All shapes and dtypes are one program."""
    generator = torch.Generator().manual_seed(5)
    cases = [(shape, dim, dtype) for dtype in DTYPES for shape, dim in SHAPES[kind]]
    inputs = [(torch.randn(shape, generator=generator) * 3).to(dtype) for shape, _, dtype in cases]

    def functions(*inputs):
        pairs = zip(inputs, cases, strict=True)
        return [fold(x, dim) for x, (_, dim, _) in pairs for fold in (torch.cumsum, torch.cumprod)]

    executable = pipeline.compile(Function(functions), tuple(inputs), num_threads=threads)
    for got, eager in zip(executable(*inputs), functions(*inputs), strict=True):
        torch.testing.assert_close(got, eager, equal_nan=True)


@pytest.mark.parametrize(
    ("function", "shape", "reason"),
    [
        pytest.param(lambda x: x.cumsum(0), (600,), "a scan along lines", id="line"),
        pytest.param(lambda x: x.cumsum(1), (5, 33), "a scan along lines", id="lines"),
        pytest.param(lambda x: x.long().cumprod(1), (5, 33), "a scan along lines", id="integers"),
        pytest.param(lambda x: x.cumprod(1), (3, 9, 33), "a scan across rows", id="products-across"),
        pytest.param(lambda x: x.double().cumsum(0), (9, 33), "a scan across rows", id="doubles-across"),
        pytest.param(lambda x: x.bfloat16().cumsum(1), (3, 9), "a scan along lines", id="small-elements"),
        pytest.param(lambda x: x.cumprod(1), (5, 33), "in their order", id="products"),
        pytest.param(lambda x: x.double().cumsum(1), (5, 33), "in their order", id="doubles"),
        pytest.param(lambda x: x.cumsum(1), (50, 3), "shorter than a vector", id="short"),
    ],
)
def test_what_becomes_vectors(function, shape, reason):
    x = torch.randn(shape, generator=torch.manual_seed(2))
    executable = pipeline.compile(Function(function), (x,))
    torch.testing.assert_close(executable(x), function(x))
    found = reasons(executable)
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize("dim", [0, 1])
def test_threads_share_lines(dim):
    x = torch.rand(60, 5003, generator=torch.manual_seed(9)) + 0.5

    def function(x):
        return x.cumsum(dim), x.cumprod(dim)

    executable = pipeline.compile(Function(function), (x,), num_threads=2)
    for got, eager in zip(executable(x), function(x), strict=True):
        torch.testing.assert_close(got, eager)
    assert sum(remark.pass_name == "parallelize-kernels" for remark in executable.remarks) == 2


@pytest.mark.parametrize("dim", [0, 1])
def test_products_and_sums_overflow_where_those_one_by_one_do(dim):
    large = torch.tensor([1e-300, 1e200, 1e200, 1e200, 1e-200, 1e-200, 1e-200, 1e300, 1e300], dtype=torch.float64)
    sums = torch.tensor([-1e308, 1e308, 1e308, -1e308, -1e308, -1e308, 1e308, 1e308, 1.0], dtype=torch.float64)
    inputs = [x.reshape(1, -1).expand(9, 9).contiguous() for x in (large, sums)]
    inputs = [x if dim else x.t().contiguous() for x in inputs]

    def function(products, sums):
        return products.cumprod(dim), sums.cumsum(dim)

    for got, eager in zip(pipeline.compile(Function(function), tuple(inputs))(*inputs), function(*inputs), strict=True):
        torch.testing.assert_close(got, eager, rtol=1e-12, atol=0)


@pytest.mark.parametrize("dim", [0, 1])
def test_special_values(dim):
    """What is not finite reaches what comes behind it in its line, and nothing else."""
    x = torch.randn(19, 19, generator=torch.manual_seed(4))
    for place, value in enumerate((torch.nan, torch.inf, -torch.inf, 3e38, -0.0)):
        x[3 * place + 1, 2 * place + 3] = value
    x[5, 17] = x[17, 5] = torch.inf

    def function(x):
        return x.cumsum(dim), x.cumprod(dim)

    for got, eager in zip(pipeline.compile(Function(function), (x,))(x), function(x), strict=True):
        torch.testing.assert_close(got, eager, equal_nan=True)


def test_sums_err_no_more_than_one_by_one():
    """Each is off by the rounding to float32 alone."""
    x = torch.randn(3, 50_001, generator=torch.manual_seed(8))
    wanted = x.double().cumsum(1)
    got = pipeline.compile(Function(lambda x: x.cumsum(1)), (x,))(x)
    assert ((got.double() - wanted).abs() <= wanted.abs() * 2**-24 + 1e-11).all()


def test_symbolic_sizes():
    rows, columns = Dim("rows", max=3000), Dim("columns", max=3000)
    executable = pipeline.compile(
        Function(lambda x: (x.cumsum(0), x.cumsum(1), x.long().cumprod(1))),
        (torch.randn(9, 24),),
        dynamic_shapes=(({0: rows, 1: columns},),),
    )
    for shape in ((0, 5), (5, 0), (1, 1), (2, 7), (7, 1027), (1027, 3), (4, 2048)):
        x = torch.randn(shape)
        for got, eager in zip(executable(x), (x.cumsum(0), x.cumsum(1), x.long().cumprod(1)), strict=True):
            torch.testing.assert_close(got, eager)


def test_in_place_and_of_parts():
    def function(x, y):
        x.cumsum_(0)
        y[:, 2:11].cumsum_(1)
        return x[1:, ::2].cumsum(0), x.t().cumsum(1), y[1:, 3:].cumsum(0)

    inputs = [torch.randn(9, 22, generator=torch.manual_seed(1)) for _ in range(2)]
    wanted = [x.clone() for x in inputs]
    results = pipeline.compile(Function(function), tuple(x.clone() for x in inputs))(*inputs)
    for got, eager in zip([*results, *inputs], [*function(*wanted), *wanted], strict=True):
        torch.testing.assert_close(got, eager)


def test_in_a_loop_and_in_a_branch():
    def function(x):
        def step(i, x):
            return i + 1, (x.cumsum(0) + x.cumsum(1)) * 0.25

        _, x = while_loop(lambda i, x: i < 3, step, (torch.tensor(0), x))
        return torch.cond(x.sum() > 0, lambda x: x.cumsum(0), lambda x: x.cumsum(1), (x,))

    executable = pipeline.compile(Function(function), (torch.randn(6, 21),))
    for scale in (1, -1):
        x = torch.rand(6, 21, generator=torch.manual_seed(6)) * scale
        torch.testing.assert_close(executable(x), function(x))
