"""What a model writes to its arguments is computed in their own memory, where that is right."""

from __future__ import annotations

import copy
import re

import pytest
import torch
from function_model import Function
from numerics import check
from torch.export import Dim
from updates.support import arguments, in_place, masked, remarks, with_buffers

import pipeline

CACHE = (1, 4, 8192, 512)  # 64 MiB of float32


def by_slice(cache, key, position):
    cache[:, :, 5:6] = key
    return cache[:, :, :8].sum(-1)


def by_index_copy(cache, key, position):
    cache.index_copy_(2, position, key)
    return cache[:, :, :8].sum(-1)


def by_index(cache, key, position):
    cache[:, :, position] = key
    return cache[:, :, :8].sum(-1)


def by_number(cache, key, position):
    place = position.item()
    torch._check(place >= 0)
    torch._check(place < cache.shape[2])
    cache[:, :, place : place + 1] = key
    return cache[:, :, :8].sum(-1)


@pytest.mark.parametrize("step", [by_slice, by_index_copy, by_index, by_number])
def test_a_step_of_a_large_cache_moves_its_slice_alone(step):
    args = torch.zeros(1, 4, 16, 8), torch.randn(1, 4, 1, 8), torch.tensor([3])
    check(Function(step), *args)
    cache, key = torch.zeros(CACHE), torch.randn(1, 4, 1, 512)
    exe, buffers = with_buffers(Function(step), (cache, key, args[2]))
    assert in_place(exe, "argument args[0]")
    assert exe.memory.workspace < 1 << 20  # so that nowhere is room for a copy of the cache
    assert "memref.alloc" not in buffers
    whole = re.compile(r"memref.copy .*: memref<1x4x8192x512xf32")
    assert not whole.search(buffers)
    expected = cache.clone()
    place = cache.data_ptr()
    torch.testing.assert_close(exe(cache, key, args[2]), step(expected, key, args[2]))
    assert cache.data_ptr() == place
    assert torch.equal(cache, expected)


def gelu_of_product(x, y, w):
    x.add_(torch.nn.functional.gelu(y @ w))
    return x.softmax(-1)


def residual_and_norm(x, y, w):
    x += y
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def branches(x, y, w):
    def one(x, y):
        x.add_(y)
        return x.sum(-1)

    def other(x, y):
        return y.sum(-1)

    if not torch.compiler.is_compiling():
        return (one if y.sum() > 0 else other)(x, y)
    return torch.cond(y.sum() > 0, one, other, (x, y))


def whole(x, y, w):
    x.copy_(y @ w)
    return x.sum()


def through_views(x, y, w):
    x[1:3].mul_(2)
    x.reshape(-1)[3:5] = 1
    return x.sum(0)


def normalized(x, y, w):
    x.copy_(x.softmax(-1))
    return x + y


IN_PLACE = [gelu_of_product, residual_and_norm, masked, branches, whole, through_views, normalized]


@pytest.mark.parametrize("shape", [(4, 4), (7, 33), (130, 65)])
@pytest.mark.parametrize("function", IN_PLACE)
def test_in_place(function, shape):
    args = arguments(*shape)
    check(Function(function), *args)
    exe, buffers = with_buffers(Function(function), args)
    assert in_place(exe, "argument args[0]")
    assert "memref.copy" not in re.sub(r"memref.copy .* memref<2x.*", "", buffers)  # a slice of two rows


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.bool])
def test_dtypes(dtype):
    def update(x, y, w):
        x.logical_xor_(y) if x.dtype == torch.bool else x.mul_(3).add_(y)
        return x | y if x.dtype == torch.bool else x + y

    args = arguments(5, 37, dtype)
    check(Function(update), *args)
    assert in_place(pipeline.compile(Function(update), args), "argument args[0]")


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (1, 5)])
def test_small_sizes(shape):
    check(Function(residual_and_norm if shape[0] else masked), *arguments(*shape))


def test_sizes_known_at_run_time():
    rows = Dim("rows", max=64)
    args = arguments(4, 8)
    shapes = {"args": ({0: rows}, {0: rows}, None)}
    exe = pipeline.compile(Function(gelu_of_product), args, dynamic_shapes=shapes)
    assert in_place(exe, "argument args[0]")
    for count in (1, 3, 33):
        x, y, w = arguments(count, 8)
        expected = x.clone()
        torch.testing.assert_close(exe(x, y, w), gelu_of_product(expected, y, w), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(x, expected, rtol=1e-4, atol=1e-5)


def test_switched_off():
    args = arguments(4, 4)
    exe = pipeline.compile(Function(masked), args, disable=["update-in-place"])
    assert [kind for kind, _ in remarks(exe)] == ["missed"]
    expected = [copy.deepcopy(one) for one in args]
    torch.testing.assert_close(exe(*args), masked(*expected))
    torch.testing.assert_close(args[0], expected[0])
