"""Long sums against float64: kernels err no more than eager, whose libraries block sums for their caches."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from torch import nn

import pipeline
from pipeline.passes.cpu.microkernel.blocked_sums import Blocks, blocks_of

SUM = ("arith.addf",)


def error(result: torch.Tensor, exact: torch.Tensor) -> float:
    """The root of the mean square of what a result is off by."""
    return float((result.double() - exact).square().mean().sqrt())


def compare(function, *args, factor=1.1, **options):
    """The error is at most `factor` times eager's; a tenth is for the chance of few elements."""
    exact = function(*[arg.double() for arg in args])
    result = pipeline.compile(Function(function), args, **options)(*args)
    assert error(result, exact) <= factor * error(function(*args), exact)


@pytest.mark.parametrize("k", [200, 768, 3001, 8192])
def test_products(k):
    torch.manual_seed(k)
    compare(torch.matmul, torch.randn(37, k), torch.randn(k, 65))


@pytest.mark.parametrize("forms", [("mk,nk->mn", (9, 2000), (20, 2000)), ("k,kn->n", (3000,), (3000, 50))], ids=str)
def test_products_of_other_forms(forms):
    torch.manual_seed(0)
    equation, *shapes = forms
    compare(lambda x, y: torch.einsum(equation, x, y), *map(torch.randn, shapes))


def test_feed_forward():
    torch.manual_seed(0)
    first, second = torch.randn(768, 3072) / 28, torch.randn(3072, 768) / 55
    compare(lambda x, a, b: F.gelu(x @ a) @ b, torch.randn(64, 768), first, second)


@pytest.mark.parametrize("channels", [64, 512])
def test_convolutions(channels):
    """Directly as exact as eager, by Winograd's algorithm half as much."""
    torch.manual_seed(0)
    x, weight = torch.randn(1, channels, 12, 12), torch.randn(64, channels, 3, 3)
    convolution = nn.Conv2d(channels, 64, 3, padding=1, bias=False).eval().requires_grad_(False)
    convolution.weight.copy_(weight)
    exact = F.conv2d(x.double(), weight.double(), padding=1)
    eager = error(convolution(x), exact)
    assert error(pipeline.compile(convolution, (x,), winograd=0)(x), exact) <= 1.25 * eager
    by_winograd = pipeline.compile(convolution, (x,), winograd=2)
    assert any("Winograd" in remark.reason for remark in by_winograd.remarks if remark.kind == "passed")
    assert error(by_winograd(x), exact) <= 2 * eager


@pytest.mark.parametrize(
    ("shape", "dim"), [((5000, 33), 0), ((3, 100_003), 1), ((300, 3001), (0, 1)), ((40, 50, 700), (0, 2))]
)
def test_sums(shape, dim):
    """Of numbers of one sign, whose errors add up; a chain of additions would err a hundred times as much."""
    torch.manual_seed(0)
    compare(lambda x: x.sum(dim), torch.rand(shape), factor=4)


def test_mean_and_variance_of_long_rows():
    torch.manual_seed(0)
    compare(lambda x: F.layer_norm(x, (100_000,)), torch.rand(2, 100_000) + 10, factor=2)


def test_sums_of_unknown_length():
    """Blocks are of one length whatever the sum's: just above it eager's halves are more exact."""
    torch.manual_seed(0)
    model = Function(torch.matmul)
    k = torch.export.Dim("k", max=10_000)
    executable = pipeline.compile(model, (torch.randn(5, 9), torch.randn(9, 33)), dynamic_shapes=(({1: k}, {0: k}),))
    for size in (0, 1, 191, 192, 193, 5000):
        x, y = torch.randn(5, size), torch.randn(size, 33)
        exact = x.double() @ y.double()
        assert error(executable(x, y), exact) <= 1.5 * error(x @ y, exact)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([192], None),
        ([193], Blocks(0, 97, 193, SUM)),
        ([3, 3, 64], Blocks(0, 1, 3, SUM)),
        ([3, 3, 512], Blocks(2, 171, 512, SUM)),
        ([1000, 1], Blocks(0, 167, 1000, SUM)),
        ([0, 500], Blocks(1, 167, 500, SUM)),
        ([4, None], Blocks(1, 192, None, SUM)),
        ([None, 64], Blocks(0, 3, None, SUM)),
        ([], None),
    ],
)
def test_where_sums_are_cut(sizes, expected):
    assert blocks_of(sizes, SUM) == expected


def test_other_reductions_are_not_cut():
    assert blocks_of([1000], ("arith.maximumf",)) is None
    assert blocks_of([1000], ("arith.addi",)) is None
    assert blocks_of([1000], None) is None
    assert blocks_of([1000], ("arith.maximumf", "arith.addf")) is not None
