"""Numbers of groups of several ops: fused is what eager computes in float64, for odd shapes, dtypes and layouts."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from numerics import differences
from torch import nn

import pipeline

FLOATS = (torch.float32, torch.float64, torch.bfloat16)


def _matches(function, *args, dynamic_shapes=None, calls=()):
    """One executable for `args` and `calls`, whose results are eager's, or eager's in float64."""
    exe = pipeline.compile(Function(function), args, dynamic_shapes=dynamic_shapes)
    exact = copy.deepcopy(function).double() if isinstance(function, nn.Module) else function
    for given in (args, *calls):
        wide = [x.double() if isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x for x in given]
        assert differences(exe(*given), function(*given), exact(*wide)) == []
    return exe


def _many_rows(*shape, dtype=torch.float32):
    """Several row reductions of one tensor, as results of one executable."""
    width = shape[-1]

    def function(x, weight, bias):
        return (
            torch.softmax(x, -1),
            torch.log_softmax(x * 2, -1),
            F.layer_norm(x, (width,), weight, bias),
            F.rms_norm(x, (width,), weight),
            torch.softmax(x + bias, -1).sum(-1, keepdim=True) * x,
        )

    return _matches(function, *(torch.randn(size).to(dtype) for size in (shape, width, width)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows(dtype):
    _many_rows(5, 7, dtype=dtype)


@pytest.mark.parametrize("shape", [(1, 1), (0, 3), (3, 1), (2, 1, 17), (1, 33), (37,), (70, 70)], ids=str)
def test_rows_of_any_size(shape):
    _many_rows(*shape)


def test_rows_without_elements():
    exe = _matches(lambda x: (torch.softmax(x, -1), x.sum(-1) + 1), torch.randn(3, 0))
    assert exe(torch.randn(3, 0))[1].tolist() == [1, 1, 1]


def test_softmax_along_other_dims():
    _matches(lambda x: [torch.softmax(x, dim) for dim in range(3)], torch.randn(3, 5, 9))


def test_softmax_of_extremes():
    infinite = torch.tensor([[1e38, -1e38, 0.0], [float("-inf"), 0.0, 1.0], [float("inf"), 0.0, 1.0]])
    nothing = torch.full((1, 3), float("-inf"))
    _matches(lambda x: (torch.softmax(x, -1), torch.log_softmax(x, -1)), torch.cat([infinite, nothing]))


@pytest.mark.parametrize("shape", [(130, 301), (3, 40, 111)], ids=str)
def test_rows_in_several_tiles(shape):
    """The values between the ops of a group are larger than what a tile may take, and the tiles do not divide them."""

    def function(x, weight):
        sums = x.sum(-1)
        return torch.softmax(x, -1), F.layer_norm(x, x.shape[-1:], weight), *x.max(-1), sums, x / sums.unsqueeze(-1)

    _matches(function, torch.rand(shape), torch.randn(shape[-1]))


@pytest.mark.parametrize("size", [(2, 6, 3, 5), (1, 6, 1, 1), (0, 6, 2, 2), (3, 6, 7)], ids=str)
def test_group_norm(size):
    _matches(lambda x, w, b: F.silu(F.group_norm(x, 2, w, b)), torch.randn(size), torch.randn(6), torch.randn(6))


@pytest.mark.parametrize("dtype", (*FLOATS, torch.int32, torch.int8), ids=str)
def test_place_and_value_of_the_largest(dtype):
    x = (torch.randn(5, 9) * 3).round().to(dtype)
    _matches(lambda x: (*x.max(-1), *x.min(0), x.argmax(-1), x.amax(-1)), x)


def test_cross_entropy():
    def function(x, target):
        return (
            F.cross_entropy(x, target),
            F.cross_entropy(x, target, reduction="none", label_smoothing=0.1),
            F.cross_entropy(x, target, ignore_index=2, reduction="sum"),
        )

    _matches(function, torch.randn(5, 7), torch.tensor([0, 6, 2, 2, 3]))


def test_sums_of_integers():
    _matches(lambda x: (x - x.sum(-1, keepdim=True), x.prod(-1, keepdim=True) + x), torch.arange(-6, 6).view(3, 4))


def test_variance_with_its_neighbours():
    _matches(lambda x: (*torch.var_mean(x * 2, -1), torch.std(x, 0)), torch.randn(5, 7))


def _attend(query, key, value, mask=None, **options):
    return F.scaled_dot_product_attention(query, key, value, mask, **options)


def _heads(*sizes, dtype=torch.float32):
    return [torch.randn(size).to(dtype) for size in sizes]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_attention(dtype):
    _matches(_attend, *_heads((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8), dtype=dtype))


@pytest.mark.parametrize("length", [1, 3, 67])
def test_causal_attention(length):
    _matches(lambda *args: _attend(*args, is_causal=True), *_heads(*[(1, 2, length, 5)] * 3))


def test_attention_with_additive_mask():
    _matches(_attend, *_heads((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8), (5, 7)))


def test_attention_with_boolean_mask():
    mask = torch.rand(2, 1, 5, 7) > 0.3
    mask[..., 0] = True
    _matches(_attend, *_heads((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)), mask)


def test_attention_that_sees_nothing():
    mask = torch.tensor([[True, False], [False, False]])
    _matches(_attend, *_heads((1, 1, 2, 4), (1, 1, 2, 4), (1, 1, 2, 4)), mask)


def test_grouped_query_attention():
    _matches(lambda *args: _attend(*args, enable_gqa=True), *_heads((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8)))


def test_attention_in_several_tiles():
    _matches(_attend, *_heads((2, 3, 133, 16), (2, 3, 131, 16), (2, 3, 131, 16)), torch.randn(133, 131))


def test_attention_written_by_hand():
    def function(query, key, value, bias):
        scores = query @ key.transpose(-2, -1) / 8**0.5 + bias
        weights = torch.softmax(scores, -1)
        return weights @ value, weights

    _matches(function, *_heads((3, 5, 8), (3, 7, 8), (3, 7, 6), (3, 1, 7)))


def test_dynamic_batch():
    batch = torch.export.Dim("batch", min=2, max=64)

    def function(x, w):
        return torch.softmax(x, -1), F.layer_norm(x, (7,), w, w), x.max(-1), _attend(x, x, x)

    args = [(torch.randn(size, 5, 7), torch.randn(7)) for size in (3, 2, 17)]
    _matches(function, *args[0], dynamic_shapes=(({0: batch}, None),), calls=args[1:])


def test_arguments_that_are_not_contiguous():
    def function(x, q):
        return torch.softmax(x, -1), F.layer_norm(x, (5,)), _attend(q, q, q)

    _matches(function, torch.randn(5, 7).t(), torch.randn(2, 5, 3, 8).transpose(1, 2))


class _Block(nn.Module):
    """A residual block of a transformer with two heads."""

    def __init__(self):
        super().__init__()
        self.norm, self.project, self.mix = nn.LayerNorm(12), nn.Linear(12, 36), nn.Linear(12, 12)
        self.feed = nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 20), nn.GELU(approximate="tanh"), nn.Linear(20, 12))

    def forward(self, x):
        batch, length, _ = x.shape
        heads = self.project(self.norm(x)).view(batch, length, 3, 2, 6).permute(2, 0, 3, 1, 4)
        mixed = _attend(*heads.unbind(0), is_causal=True).transpose(1, 2).reshape(batch, length, 12)
        x = x + self.mix(mixed)
        return x + self.feed(x)


@pytest.mark.parametrize("length", [1, 9])
def test_block_of_a_transformer(length):
    model = _Block()
    with torch.no_grad():
        _matches(model, torch.randn(2, length, 12))
