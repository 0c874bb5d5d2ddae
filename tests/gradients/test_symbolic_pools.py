"""Gradients of pools whose results have sizes that are known as the program runs only, and of such without elements."""

import pytest
import torch
from torch.nn import functional as F

POOLS = {
    "as large": lambda x, n: F.adaptive_avg_pool2d(x, (None, None)),
    "as high": lambda x, n: F.adaptive_avg_pool2d(x, (None, 2)),
    "of a given size": lambda x, n: F.adaptive_avg_pool2d(x, (n, n + 2)),
    "in one dim": lambda x, n: F.adaptive_avg_pool1d(x.flatten(0, -3), n),
    "in three dims": lambda x, n: F.adaptive_avg_pool3d(x, (n, None, n)),
    "area": lambda x, n: F.interpolate(x, (n, n), mode="area"),
    "average": lambda x, n: F.avg_pool1d(x.flatten(0, -3), n, n - 1, 1),
}


@pytest.mark.parametrize("function", POOLS.values(), ids=POOLS)
def test_gradients_are_eagers(function):
    code = torch.compile(function, backend="pipeline", dynamic=True)
    for shape, n in (((2, 3, 7, 5), 3), ((4, 5, 8, 8), 5), ((2, 3, 9, 6), 2)):
        x = torch.randn(shape, dtype=torch.float64)
        mine, its = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, expected = code(mine, n), function(its, n)
        torch.testing.assert_close(got, expected)
        (got**2).sum().backward()
        (expected**2).sum().backward()
        torch.testing.assert_close(mine.grad, its.grad)


@pytest.mark.parametrize(
    "function", [lambda x: F.avg_pool1d(x, 6, 3, 2), lambda x: torch.linalg.qr(x), lambda x: torch.linalg.lu(x)]
)
def test_of_nothing(function):
    x = torch.randn(0, 3, 9, requires_grad=True)
    got, expected = torch.compile(function, backend="pipeline", dynamic=True)(x), function(x)
    for one, other in zip(
        *((result,) if torch.is_tensor(result) else result for result in (got, expected)), strict=True
    ):
        assert one.shape == other.shape and one.dtype == other.dtype
