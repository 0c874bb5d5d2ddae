"""In-place spellings give the functional kernels; arithmetic stays as written; convolutions take their norm."""

from __future__ import annotations

import itertools
import re

import pytest
import torch
from function_model import Function
from fusion.support import calls, compiled
from torch import nn

import pipeline


def _ir(function, *args):
    """The IR of a function's kernels, without names of the source: after a check of its numbers."""
    exe = pipeline.compile(Function(function), args)
    expected = function(*[x.clone() for x in args])
    torch.testing.assert_close(exe(*[x.clone() for x in args]), expected)
    return re.sub(r" loc\(.*?\)|#loc.*\n", "", exe.ir("kernels")), exe


def _widen(x, y, spelling):
    """((x.to(int64) + y) * x).to(int32) of int32 x and int64 y; each letter of `spelling` is one step, i: in place."""
    wide = x.to(torch.int64)
    added = wide.add_(y) if spelling[0] == "i" else wide + y
    product = added.to(torch.int32)
    product = product.mul_(x) if spelling[1] == "i" else product * x
    if spelling[2] == "f":
        return product.to(torch.int32)
    result = torch.empty_like(x)
    return result.copy_(product)


SPELLINGS = ["".join(one) for one in itertools.product("fi", repeat=3)]


@pytest.fixture(scope="module")
def functional():
    return _ir(lambda x, y: _widen(x, y, "fff"), *_integers())


def _integers():
    return torch.arange(-6, 6, dtype=torch.int32).view(3, 4), torch.arange(12).view(3, 4)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_casts_and_arithmetic_are_one_kernel(spelling, functional):
    text, exe = _ir(lambda x, y: _widen(x, y, spelling), *_integers())
    assert len(exe.kernels) == 1
    assert text == functional[0]


def _add(x, y):
    return x * 2 + y


def _add_in_place(x, y):
    return x.mul(2).add_(y)


def _view(x, y):
    return (x * 2).view(-1).exp() + y.view(-1)


def _view_in_place(x, y):
    z = x * 2
    return z.view(-1).exp_().add_(y.view(-1))


def _slice(x, y):
    z = x + 1
    return torch.cat([z[:1] * y[:1], z[1:]])


def _slice_in_place(x, y):
    z = x + 1
    z[:1].mul_(y[:1])
    return z


def _mask(x, y):
    return torch.where(y > 0, 3.0, x.exp())


def _mask_in_place(x, y):
    z = x.exp()
    z[y > 0] = 3.0
    return z


def _copy(x, y):
    return (x + y).exp()


def _copy_in_place(x, y):
    z = torch.empty_like(x)
    z.copy_(x + y)
    return z.exp_()


SAME = {"add": (_add, _add_in_place), "view": (_view, _view_in_place), "copy": (_copy, _copy_in_place)}
SAME_NUMBER = {**SAME, "slice": (_slice, _slice_in_place), "mask": (_mask, _mask_in_place)}


@pytest.mark.parametrize("name", SAME_NUMBER)
def test_in_place_is_functional(name):
    args = (torch.randn(3, 4), torch.randn(3, 4))
    (text, exe), (other_text, other) = (_ir(function, *args) for function in SAME_NUMBER[name])
    assert len(other.kernels) <= len(exe.kernels)
    if name in SAME:
        assert other_text == text


def test_no_distribution_and_no_reassociation():
    text, exe = _ir(lambda a, b, c: (a + b) * c, *(torch.randn(5) for _ in range(3)))
    assert [kernel.name for kernel in exe.kernels] == ["fused_add_mul"]
    assert (text.count("arith.addf"), text.count("arith.mulf")) == (1, 1)


@pytest.mark.parametrize("channels", [1, 8], ids=["dense", "depthwise"])
def test_norm_and_relu_are_the_epilogue_of_a_convolution(channels):
    model = nn.Sequential(nn.Conv2d(8, 8, 3, groups=channels, bias=False), nn.BatchNorm2d(8), nn.ReLU()).eval()
    with torch.no_grad():
        model[1].running_mean.normal_()
        model[1].running_var.uniform_(0.5, 2)
        exe = compiled(model.requires_grad_(False), torch.randn(2, 8, 9, 18), disable=["fold-batch-norm"])
    (kernel,) = calls(exe)
    assert "conv2d" in kernel
    assert kernel.endswith("relu")
