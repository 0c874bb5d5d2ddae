"""Elementwise kernels of several ops, whose dims collapse-group-loops makes one, against eager."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from schedules import values

import pipeline


def collapsed(exe):
    return [one.reason for one in exe.remarks if one.pass_name == "collapse-group-loops"]


def two_results(x, y):
    z = x * y + 1
    return z, torch.where(z > x, z - y, x)


def check(function, *args):
    exe = pipeline.compile(Function(function), args)
    torch.testing.assert_close(exe(*args), function(*args))
    return exe


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
def test_shapes(dtype):
    torch.manual_seed(0)
    for shape in ((3, 5), (64, 3, 3, 3), (2, 1, 7, 7), (1, 1), (40, 1, 50), (5, 7, 1, 1)):
        x, y = (values(*shape, dtype=dtype) for _ in range(2))
        assert len(collapsed(check(two_results, x, y))) == 1, shape


@pytest.mark.parametrize("shape", [(), (7,), (0, 5), (3, 0, 2)])
def test_shapes_that_stay(shape):
    assert not collapsed(check(two_results, torch.randn(shape), torch.randn(shape)))


def test_broadcast_operands():
    torch.manual_seed(0)
    x, channel, plane, row = torch.randn(2, 6, 5, 7), torch.randn(6, 1, 1), torch.randn(5, 7), torch.randn(7)
    assert collapsed(check(two_results, x, channel)) == ["its dims of 2 x 6 x 5 x 7 are 2 x 6 x 35"]
    assert collapsed(check(two_results, x, plane)) == ["its dims of 2 x 6 x 5 x 7 are 12 x 35"]
    assert collapsed(check(two_results, x, row)) == ["its dims of 2 x 6 x 5 x 7 are 60 x 7"]
    assert not collapsed(check(two_results, x[0, 0], row))
    assert collapsed(check(two_results, x, torch.randn(2, 1, 1, 1))) == ["its dims of 2 x 6 x 5 x 7 are 2 x 210"]
    assert collapsed(check(two_results, x, torch.randn(1, 6, 5, 1))) == ["its dims of 2 x 6 x 5 x 7 are 2 x 30 x 7"]
    assert collapsed(check(two_results, x, torch.randn(1, 1, 1))) == ["its dims of 2 x 6 x 5 x 7 are 420"]
    assert collapsed(check(two_results, x, torch.tensor(2.5))) == ["its dims of 2 x 6 x 5 x 7 are 420"]


def test_an_operand_that_is_read_in_two_ways():
    torch.manual_seed(0)
    x, y = torch.randn(6, 6, 2, 2), torch.randn(6, 6)

    def both(x, y):
        z = x * y[:, :, None, None]
        return z, z + y[None, :, :, None].transpose(2, 1)[:, :, :2]

    def unit(x, y):
        return x * y, x.expand(4, 1, 5, 2) + y

    check(both, x, y)
    check(unit, torch.randn(1, 1, 5, 2), torch.randn(1, 5, 1))
    check(lambda x: two_results(x, x.squeeze(0)), torch.randn(1, 6, 5, 7))


def test_strided_and_aliased_arguments():
    torch.manual_seed(0)
    x = torch.randn(6, 20)
    check(two_results, x[:, ::2], x[:, 1::2])
    check(two_results, x.t(), x.t())
    check(lambda x: two_results(x[1:, :], x[:-1, :]), x)
    check(lambda x: two_results(x[:, 1:], x[:, :-1]), x)


def test_parts_of_a_concatenation():
    torch.manual_seed(0)
    x, y = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5)
    for dim in range(4):
        check(lambda x, y, dim=dim: torch.cat(two_results(x, y), dim), x, y)
        check(lambda x, y, dim=dim: (torch.cat((x.exp(), x.exp() * y), dim), x.exp() + y), x, y)


def test_in_place():
    torch.manual_seed(0)

    def step(weight, gradient, first, second):
        first.lerp_(gradient, 0.1)
        second.mul_(0.9).addcmul_(gradient, gradient, value=0.1)
        weight.addcdiv_(first, second.sqrt() + 1e-8, value=-0.1)

    args = [torch.randn(6, 5, 3, 3), torch.randn(6, 5, 3, 3), torch.randn(6, 5, 3, 3), torch.rand(6, 5, 3, 3)]
    copies = [one.clone() for one in args]
    exe = pipeline.compile(Function(step), tuple(args))
    assert collapsed(exe) == ["its dims of 6 x 5 x 3 x 3 are 270"]
    exe(*args)
    step(*copies)
    torch.testing.assert_close(args, copies)


def test_one_kernel_for_two_calls():
    torch.manual_seed(0)
    w, x, y, z = (torch.randn(6, 5, 3) for _ in range(4))
    exe = check(lambda w, x, y, z: (*two_results(w, x), (w @ x.mT).sum(), *two_results(y, z)), w, x, y, z)
    assert collapsed(exe)
