"""What a model writes to its arguments and buffers is computed in their own memory, where that is right."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
import torch
from numerics import check
from torch import nn
from torch.export import Dim

import pipeline
from pipeline import ArgumentError, CaptureError, PipelineError
from pipeline.targets.cpu import lower

CACHE = (1, 4, 8192, 512)  # 64 MiB of float32


class Inline(nn.Module):
    """A function of its arguments as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def remarks(exe):
    return [(one.kind, one.reason) for one in exe.remarks if one.pass_name == "update-in-place"]


def in_place(exe, *names):
    """Whether just these are updated in place, as decided and as it came out."""
    return remarks(exe) == [("passed", f"{name} is updated in place") for name in names]


def with_buffers(model, args):
    """An executable, and the IR once it has buffers."""
    texts = []

    def bufferize(module, disable):
        lower.bufferize(module, disable)
        texts.append(str(module))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.targets.cpu.target.bufferize", bufferize)
        return pipeline.compile(model, args, cache=False), texts[0]


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
    check(Inline(step), *args)
    cache, key = torch.zeros(CACHE), torch.randn(1, 4, 1, 512)
    exe, buffers = with_buffers(Inline(step), (cache, key, args[2]))
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


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 8, 4))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, key):
        self.keys[:, 2:3] = key
        self.count += 1
        return self.keys.sum(1) * self.count


def test_buffers():
    model, eager = Buffers(), Buffers()
    exe = pipeline.compile(model, (torch.randn(2, 1, 4),))
    assert in_place(exe, "weight keys", "weight count") or in_place(exe, "weight count", "weight keys")
    place = model.keys.data_ptr()
    for _ in range(3):
        key = torch.randn(2, 1, 4)
        torch.testing.assert_close(exe(key), eager(key))
    assert model.keys.data_ptr() == place
    torch.testing.assert_close(model.state_dict(), eager.state_dict())


def test_buffers_of_an_artifact(tmp_path):
    model, eager = Buffers(), Buffers()
    pipeline.compile(model, (torch.randn(2, 1, 4),)).save(tmp_path / "m.pipeline")
    loaded = pipeline.load(tmp_path / "m.pipeline")
    for _ in range(2):
        key = torch.randn(2, 1, 4)
        np.testing.assert_allclose(loaded(key.numpy()), eager(key), rtol=1e-6)


def gelu_of_product(x, y, w):
    x.add_(torch.nn.functional.gelu(y @ w))
    return x.softmax(-1)


def residual_and_norm(x, y, w):
    x += y
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def masked(x, y, w):
    x[y > 0] = 0
    return x * 2


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


def of_a_view(x, y, w):
    x.copy_(y)
    return x[1:].sum()


def normalized(x, y, w):
    x.copy_(x.softmax(-1))
    return x + y


IN_PLACE = [gelu_of_product, residual_and_norm, masked, branches, whole, through_views, normalized]


def arguments(rows, columns, dtype=torch.float32):
    def draw(*shape):
        return (torch.randn(*shape) * 4).to(dtype)

    return draw(rows, columns), draw(rows, columns), draw(columns, columns)


@pytest.mark.parametrize("shape", [(4, 4), (7, 33), (130, 65)])
@pytest.mark.parametrize("function", IN_PLACE)
def test_in_place(function, shape):
    args = arguments(*shape)
    check(Inline(function), *args)
    exe, buffers = with_buffers(Inline(function), args)
    assert in_place(exe, "argument args[0]")
    assert "memref.copy" not in re.sub(r"memref.copy .* memref<2x.*", "", buffers)  # a slice of two rows


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.bool])
def test_dtypes(dtype):
    def update(x, y, w):
        x.logical_xor_(y) if x.dtype == torch.bool else x.mul_(3).add_(y)
        return x | y if x.dtype == torch.bool else x + y

    args = arguments(5, 37, dtype)
    check(Inline(update), *args)
    assert in_place(pipeline.compile(Inline(update), args), "argument args[0]")


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (1, 5)])
def test_small_sizes(shape):
    check(Inline(residual_and_norm if shape[0] else masked), *arguments(*shape))


def both(x, y, w):
    x.copy_(x @ w)
    return x + y


def transposed(x, y, w):
    x.copy_(x.t().clone())
    return x + y


def old_value_later(x, y, w):
    old = x.clone()
    x.add_(y)
    return (old @ w).softmax(-1) + (x @ w)


def exchanged(x, y, w):
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    return x - y


def shifted(x, y, w):
    x[1:] = x[:-1].clone()
    return x + y


def in_a_loop(x, y, w):
    for _ in range(3):
        x.copy_(torch.tanh(x @ w))
    return x + y


def copied_to_another(x, y, w):
    x.add_(y)
    y.copy_(x)
    return x - 1


def two_updates(x, y, w):
    x[x > 0.5] = 0.25
    x.copy_(y.flip(1) + y)
    y[1:3] = (y * 2)[0:2]
    return x.sum(0)


def one_after_the_other(x, y, w):
    y.copy_(y.softmax(0) - y)
    x.copy_(torch.nn.functional.layer_norm(x, x.shape[-1:]) * x)
    between = x[:, 0:1] * 0.5 + x
    x.copy_(x.cumsum(0))
    x.add_(between.cumsum(0) - y)
    return between + 1


@pytest.mark.parametrize("shape", [(4, 4), (33, 33)])
@pytest.mark.parametrize(
    "function",
    [
        both,
        transposed,
        old_value_later,
        exchanged,
        shifted,
        in_a_loop,
        copied_to_another,
        of_a_view,
        two_updates,
        one_after_the_other,
    ],
)
def test_others_are_right(function, shape):
    check(Inline(function), *arguments(*shape))


@pytest.mark.parametrize(
    "function, reason",
    [
        (both, "reads elements of the old value after it has written others"),
        (old_value_later, "reads the old value after that"),
        (exchanged, "another argument takes its old value"),
        (of_a_view, "it becomes what another argument is"),
    ],
)
def test_a_copy_says_why(function, reason):
    exe = pipeline.compile(Inline(function), arguments(8, 8))
    assert any(kind == "missed" and reason in text for kind, text in remarks(exe)), remarks(exe)


def test_a_returned_buffer_is_copied():
    class Returns(Buffers):
        def forward(self, key):
            self.keys.add_(key)
            return self.keys

    model = Returns()
    exe = pipeline.compile(model, (torch.randn(2, 1, 4),))
    result = exe(torch.ones(2, 1, 4))
    assert result.data_ptr() != model.keys.data_ptr()
    assert torch.equal(result, torch.ones(2, 8, 4)) and torch.equal(model.keys, torch.ones(2, 8, 4))
    exe(torch.ones(2, 1, 4))
    assert torch.equal(result, torch.ones(2, 8, 4))
    assert any("its new value is returned, too" in text for _, text in remarks(exe))


def test_sizes_known_at_run_time():
    rows = Dim("rows", max=64)
    args = arguments(4, 8)
    shapes = {"args": ({0: rows}, {0: rows}, None)}
    exe = pipeline.compile(Inline(gelu_of_product), args, dynamic_shapes=shapes)
    assert in_place(exe, "argument args[0]")
    for count in (1, 3, 33):
        x, y, w = arguments(count, 8)
        expected = x.clone()
        torch.testing.assert_close(exe(x, y, w), gelu_of_product(expected, y, w), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(x, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("view", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[::2]])
def test_arguments_that_are_not_row_major_get_a_copy(view):
    _, y, w = arguments(8, 8)
    exe = pipeline.compile(Inline(masked), arguments(*view(torch.zeros(8, 8)).shape))
    memory = torch.randn(8, 8)
    expected = memory.clone()
    y = y[: view(memory).shape[0], : view(memory).shape[1]].contiguous()
    w = torch.zeros(y.shape[1], y.shape[1])
    torch.testing.assert_close(exe(view(memory), y, w), masked(view(expected), y, w))
    assert torch.equal(memory, expected)


def test_arguments_that_share_memory_are_refused():
    exe = pipeline.compile(Inline(masked), arguments(4, 4))
    memory = torch.randn(8, 4)
    kept = memory.clone()
    with pytest.raises(ArgumentError, match="is written to and shares memory with"):
        exe(memory[:4], memory[2:6], torch.zeros(4, 4))
    assert torch.equal(memory, kept)


def test_an_argument_that_is_a_buffer_which_is_written_to_is_refused():
    class Adds(Buffers):
        def forward(self, x):
            self.keys.add_(1)
            return x * 2

    model = Adds()
    exe = pipeline.compile(model, (torch.ones(2, 8, 4),))
    with pytest.raises(ArgumentError, match="argument x: shares memory with weight keys, which is written to"):
        exe(model.keys)
    assert not model.keys.any()


def test_buffers_that_share_memory_are_refused():
    class Shares(nn.Module):
        def __init__(self):
            super().__init__()
            whole = torch.arange(6.0)
            self.register_buffer("whole", whole)
            self.register_buffer("part", whole[1:4])

        def forward(self, x):
            self.whole.add_(x)
            return self.part * 2

    with pytest.raises(CaptureError, match="part and whole share memory|whole and part share memory"):
        pipeline.compile(Shares(), (torch.ones(6),))


def test_a_failed_check_writes_nothing_out_of_range():
    """What is written before the failing op stays written, as in eager."""

    def update(x, index, y):
        x.mul_(2)
        x[index] = y
        return x + 1

    memory = torch.ones(12)
    exe = pipeline.compile(Inline(update), (torch.ones(4), torch.tensor([1]), torch.ones(1)))
    with pytest.raises(PipelineError, match="index out of range"):
        exe(memory[4:8], torch.tensor([5]), torch.full((1,), 7.0))
    assert torch.equal(memory, torch.tensor([1.0] * 4 + [2.0] * 4 + [1.0] * 4))


def test_autograd_knows_that_a_tensor_was_written():
    exe = pipeline.compile(Inline(masked), arguments(4, 4))
    x, y, w = arguments(4, 4)
    weight = torch.randn(4, 4, requires_grad=True)
    product = (weight * x).sum()
    exe(x, y, w)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_switched_off():
    args = arguments(4, 4)
    exe = pipeline.compile(Inline(masked), args, disable=["update-in-place"])
    assert [kind for kind, _ in remarks(exe)] == ["missed"]
    expected = [copy.deepcopy(one) for one in args]
    torch.testing.assert_close(exe(*args), masked(*expected))
    torch.testing.assert_close(args[0], expected[0])


def test_a_buffer_to_which_a_packed_product_is_added():
    """The kernel sees its result as panels, so that nobody can tell from it where that lies."""

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(256, 256)
            self.register_buffer("total", torch.zeros(8, 256))

        def forward(self, x):
            self.total.add_(self.linear(x))
            return self.total * 1

    model, x = Sum().requires_grad_(False), torch.randn(8, 256)
    exe = pipeline.compile(copy.deepcopy(model), (x,))
    assert any(kernel.name.startswith("pack") for kernel in exe.kernels)
    for _ in range(3):
        torch.testing.assert_close(exe(x), model(x))
