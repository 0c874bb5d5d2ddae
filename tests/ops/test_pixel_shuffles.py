"""Channels that become pixels and back, of every dtype and rank, of symbolic sizes and sizes that do not divide."""

import pytest
import torch
from dynamo_state import fresh_dynamo
from function_model import Function
from numerics import check
from torch.nn.functional import pixel_shuffle, pixel_unshuffle

__all__ = ["fresh_dynamo"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_every_dtype(dtype):
    x = (5 * torch.randn(2, 16, 8, 12)).to(dtype)
    check(Function(lambda x: (pixel_shuffle(x, 2), pixel_unshuffle(x, 4))), x)
    check(Function(lambda x: (pixel_shuffle(x, 4), pixel_unshuffle(x, 2))), x.to(memory_format=torch.channels_last))


@pytest.mark.parametrize(
    ("shape", "factor"), [((18, 3, 6), 3), ((2, 2, 4, 3, 5), 1), ((0, 4, 3, 5), 2), ((1, 1, 9, 4, 4), 2)]
)
def test_every_rank_and_factor(shape, factor):
    x = torch.randn(shape)
    if x.shape[-3] % factor**2 == 0:
        check(Function(lambda x: pixel_shuffle(x, factor) + 1), x)
    if not any(size % factor for size in shape[-2:]):
        check(Function(lambda x: pixel_unshuffle(x, factor) + 1), x)


@pytest.mark.parametrize("function", [pixel_shuffle, pixel_unshuffle])
@pytest.mark.parametrize("trains", [False, True])
def test_symbolic_sizes(function, trains):
    code = torch.compile(lambda x: function(x, 4).sin(), backend="pipeline", dynamic=True)
    for shape in ((1, 16, 8, 12), (2, 32, 16, 4), (3, 48, 4, 8)):
        x = torch.randn(shape)
        mine, its = x.clone().requires_grad_(trains), x.clone().requires_grad_(trains)
        got, expected = code(mine), function(its, 4).sin()
        torch.testing.assert_close(got, expected)
        if trains:
            got.square().sum().backward()
            expected.square().sum().backward()
            torch.testing.assert_close(mine.grad, its.grad)


def test_sizes_that_do_not_divide():
    code = torch.compile(lambda x: pixel_unshuffle(x, 2), backend="pipeline", dynamic=True)
    code(torch.randn(2, 3, 4, 6))
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        code(torch.randn(2, 3, 5, 6))
