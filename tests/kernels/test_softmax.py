"""Softmax and its logarithm where elements are NaN or infinite, or vanish: over all dims, lengths and masks."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline

#: Shorter than a vector, as long, several, with and without a rest.
LENGTHS = (1, 7, 16, 33, 64, 67, 100, 200, 1000)

#: What rows begin with; the rest are ordinary numbers.
BEGINNINGS = (
    [float("nan")],
    [float("inf")],
    [float("inf"), float("inf")],
    [float("-inf")],
    [float("inf"), float("-inf"), float("nan")],
    [1e38, -2e38],
    [0.0, -0.0],
    [90.0, -5.0, -10.0, -14.1],  # so small are some exponentials that they are denormal, or 0
)


def rows(length, dtype):
    """Rows with special elements at their ends or next to them, some of nothing else, and ordinary ones."""
    made = []
    for number, beginning in enumerate(BEGINNINGS):
        row = torch.randn(length, dtype=dtype) * 3
        count = min(length, len(beginning))
        row[:count] = torch.tensor(beginning[:count], dtype=dtype)
        made += [row, row.flip(0), row.roll(length // 2 + number)]
    fills = (float("nan"), float("inf"), float("-inf"), 0.0, -1e38)
    return torch.stack([*made, *(torch.full((length,), fill, dtype=dtype) for fill in fills)])


def check(mine, theirs, dtype):
    """As near as the rounding of x - max(x) lets results be; NaN, infinities and what vanishes are the same."""
    relative, smallest = {torch.float32: (4e-6, 3e-45), torch.float64: (1e-13, 1e-300)}[dtype]
    torch.testing.assert_close(mine.double(), theirs, rtol=relative, atol=smallest, equal_nan=True)


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_special_rows(dtype, cpu):
    torch.manual_seed(0)
    matrices = tuple(rows(length, dtype) for length in LENGTHS)
    model = Function(lambda *xs: [(x.softmax(-1), x.log_softmax(-1)) for x in xs])
    results = pipeline.compile(model, matrices, cpu=cpu)(*matrices)
    for x, (plain, logarithm) in zip(matrices, results, strict=True):
        check(plain, x.double().softmax(-1), dtype)
        exact = x.double().log_softmax(-1)
        torch.testing.assert_close(logarithm.double(), exact, rtol=4e-6, atol=4e-6, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_special_rows_along_other_dims(dim, dtype):
    torch.manual_seed(0)
    x = torch.stack([rows(35, dtype), rows(35, dtype).flip(0)]).movedim(2, dim).contiguous()
    executable = pipeline.compile(Function(lambda x: (x.softmax(dim), x.log_softmax(dim))), (x,))
    plain, logarithm = executable(x)
    check(plain, x.double().softmax(dim), dtype)
    torch.testing.assert_close(logarithm.double(), x.double().log_softmax(dim), rtol=4e-6, atol=4e-6, equal_nan=True)


@pytest.mark.parametrize("length", LENGTHS)
def test_masked(length):
    """What is masked is exactly 0; a row of nothing else is NaN, as in eager."""
    torch.manual_seed(0)
    x, mask = torch.randn(40, length) * 5, torch.rand(40, length) < 0.5
    mask[3], mask[4] = True, False
    model = Function(lambda x, mask: x.masked_fill(mask, float("-inf")).softmax(-1))
    result = pipeline.compile(model, (x, mask))(x, mask)
    check(result, x.double().masked_fill(mask, float("-inf")).softmax(-1), torch.float32)
    some = ~mask.all(-1, keepdim=True)
    assert (result[mask & some] == 0).all()
    assert result[3].isnan().all()


def test_nothing_that_is_seen_misses_nan():
    """Where the largest elements or the exponentials are results, too, NaN makes all of them NaN, as in eager."""

    def parts(x):
        largest = x.amax(-1, keepdim=True)
        powers = torch.exp(x - largest)
        return largest, powers / powers.sum(-1, keepdim=True)

    def powers(x):
        powers = torch.exp(x - x.amax(-1, keepdim=True))
        return powers, powers / powers.sum(-1, keepdim=True)

    def other_rows(x):
        powers = torch.exp(x - x.amax(-1, keepdim=True))
        return powers.T / powers.sum(-1, keepdim=True)

    def largest_share(x):
        powers = torch.exp(x - x.amax(-1, keepdim=True))
        return torch.fmax(powers, powers.sum(-1, keepdim=True))

    x = torch.randn(21, 21)
    x[torch.arange(0, 21, 2), torch.arange(20, -1, -2)] = float("nan")
    for function in (parts, powers, other_rows, largest_share):
        executable = pipeline.compile(Function(function), (x,))
        for mine, theirs in zip(executable(x), function(x), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("images", [1, 2])
def test_attention_with_rows_that_are_masked_as_a_whole(images):
    """They are 0; NaN in a query or in a key makes rows NaN that meet it, masked or not."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(images, 3, 37, 24) for _ in range(3))
    query[0, 0, 5, 3] = key[0, 1, 7, 2] = float("nan")
    mask = torch.rand(37, 37) < 0.6
    mask[:, 7], mask[5], mask[6], mask[11] = False, True, True, False
    mask[6, 7] = True
    executable = pipeline.compile(Function(F.scaled_dot_product_attention), (query, key, value, mask))
    result, exact = executable(query, key, value, mask), F.scaled_dot_product_attention(query, key, value, mask)
    torch.testing.assert_close(result, exact, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert (result[:, 2, 11] == 0).all()
    assert result[0, 0, 5].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_with_logits_that_are_far_apart(dtype):
    """Weights that would be denormal are 0; what is left is as exact as ever, and every other weight counts."""
    smallest = torch.finfo(dtype).tiny
    logits = torch.linspace(0, 1.3 * torch.tensor(smallest, dtype=torch.float64).log().item(), 61, dtype=dtype)
    query, key = torch.ones(1, 2, 7, 8, dtype=dtype), torch.zeros(1, 2, 61, 8, dtype=dtype)
    key[..., 3] = logits
    arguments = query, key, torch.eye(61, dtype=dtype).expand(1, 2, 61, 61).contiguous()
    executable = pipeline.compile(Function(lambda *qkv: F.scaled_dot_product_attention(*qkv, scale=1.0)), arguments)
    assert any(remark.pass_name == "flush-softmax-underflow" for remark in executable.remarks)
    weights = executable(*arguments).reshape(-1, 61)
    exact = logits.double().softmax(-1)
    counts = exact > 61 * smallest
    assert 30 < counts.sum() < 61
    torch.testing.assert_close(weights[:, counts].double(), exact[counts].expand(14, -1), rtol=2e-6, atol=0.0)
    assert (weights[:, ~counts] <= 61 * smallest).all()


def test_sizes():
    """None of rows, none in them, one."""
    for shape in ((0, 5), (5, 0), (1, 1), (0,), (3, 1, 0)):
        x = torch.randn(shape)
        model = Function(lambda x: (x.softmax(-1), x.log_softmax(-1), x.softmax(0)))
        for mine, theirs in zip(pipeline.compile(model, (x,))(x), model(x), strict=True):
            torch.testing.assert_close(mine, theirs)
