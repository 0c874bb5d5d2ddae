"""Attention with an online softmax: the simulator against PyTorch, and what is not an attention."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch
from agreement_with_eager import compare
from gpu_models import Function
from torch import nn
from torch.nn import functional as F

import pipeline
from pipeline.targets.cuda import ptx

pytestmark = pytest.mark.usefixtures("simulator")


def _randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _inputs(queries: int, keys: int, width: int, value_width: int, dtype: torch.dtype, heads: int = 2) -> Any:
    sizes = ((queries, width), (keys, width), (keys, value_width))
    return [_randn(1, heads, *size, seed=seed, dtype=dtype) for seed, size in enumerate(sizes)]


def _check(function: Any, *args: torch.Tensor, streamed: bool = True, target: str = "cuda:sm_80") -> Any:
    """Against the function in float32, rounded once."""
    executable = pipeline.compile(Function(function), args, target=target)
    wide = function(*(one.float() if one.is_floating_point() else one for one in args))
    tolerance = 1e-5 if args[0].dtype == torch.float32 else 2e-2
    compare(executable(*args), wide.to(args[0].dtype), tolerance)
    said = [one.kind for one in executable.remarks if one.pass_name == "mark-flash-attention"]
    assert ("passed" in said) == streamed
    return executable


def _attention(**options: Any) -> Any:
    return lambda q, k, v, *mask: F.scaled_dot_product_attention(q, k, v, *mask, **options)


DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("queries", "keys", "width", "value_width"),
    [(64, 64, 16, 16), (33, 70, 16, 24), (70, 33, 20, 7), (17, 130, 33, 40), (16, 2, 8, 8), (130, 72, 64, 64)],
)
def test_sizes(queries, keys, width, value_width, dtype):
    _check(_attention(), *_inputs(queries, keys, width, value_width, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("queries", "keys"), [(70, 70), (33, 90), (90, 33)])
def test_causal(queries, keys, dtype):
    _check(_attention(is_causal=True), *_inputs(queries, keys, 16, 16, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_masks(dtype):
    """What is added, and what is left out; rows with nothing left are 0."""
    q, k, v = _inputs(40, 70, 16, 16, dtype)
    _check(_attention(), q, k, v, _randn(40, 70, seed=3, dtype=dtype))
    mask = _randn(1, 1, 40, 70, seed=4) > 0
    mask[..., 3, :], mask[..., 5, :40] = False, False
    _check(_attention(), q, k, v, mask)


def test_rows_of_minus_infinity():
    """An added -inf everywhere: 0, as PyTorch has it; without the test for that, NaN."""
    q, k, v = _inputs(40, 70, 16, 16, torch.float32)
    mask = torch.zeros(40, 70)
    mask[3], mask[5, :64] = -math.inf, -math.inf
    _check(_attention(), q, k, v, mask)
    _check(lambda q, k, v, mask: torch.softmax(q @ k.transpose(-1, -2) + mask, -1) @ v, q, k, v, mask)


def test_special_values():
    q, k, v = _inputs(40, 70, 16, 16, torch.float32)
    q[0, 0, 1, 2], k[0, 1, 60, 3] = math.nan, math.inf
    v[0, 0, 69, 5] = math.inf
    _check(_attention(), q, k, v)


@pytest.mark.parametrize("dtype", DTYPES)
def test_grouped_queries(dtype):
    q, (_, k, v) = _randn(1, 4, 33, 16, seed=5, dtype=dtype), _inputs(1, 40, 16, 16, dtype)
    _check(_attention(enable_gqa=True, is_causal=True), q, k, v)


def test_large_scores():
    """Sums relative to the greatest score: exponentials of scores themselves would be infinite."""
    q, k, v = _inputs(33, 100, 16, 16, torch.float32)
    _check(_attention(), q * 100, k * 10, v)


def test_by_hand():
    """Products, a scale, a mask and a softmax, written one by one; what is behind runs on the result's registers."""
    q, k, v = _inputs(33, 70, 16, 24, torch.float32)
    bias = _randn(33, 24, seed=6)
    _check(lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ v, q, k, v)
    executable = _check(
        lambda q, k, v, b: torch.relu(torch.softmax((q @ k.transpose(-1, -2)).tril(2), -1) @ v) + b, q, k, v, bias
    )
    assert sum("softmax" in one.name for one in executable._code.launches) <= 1


def test_few_queries_with_many_keys():
    """More scores than a block can keep."""
    _check(_attention(), *_inputs(3, 9000, 8, 8, torch.float32, heads=1))


def test_a_batch_of_one():
    q, k, v = (one[0, 0] for one in _inputs(40, 50, 16, 16, torch.float32))
    _check(lambda q, k, v: torch.softmax(q @ k.t(), -1) @ v, q, k, v)


def test_no_memory_for_scores():
    executable = _check(_attention(is_causal=True), *_inputs(130, 200, 16, 16, torch.float32))
    assert executable._code.main.arena < 130 * 200 * 4


def test_keys_that_a_causal_mask_takes_out_are_not_looked_at():
    """The loop over keys ends behind the block's last query."""
    q, k, v = _inputs(200, 200, 16, 16, torch.bfloat16)
    causal = _check(_attention(is_causal=True), q, k, v).ir("gpu")
    whole = _check(_attention(), q, k, v).ir("gpu")
    assert re.search(r"scf.for %\w+ = %c0 to %\d+", causal)
    assert not re.search(r"scf.for %\w+ = %c0 to %\d+", whole)


CONDITIONS = {
    "behind by 3": (lambda i, j: j <= i + 3, True),
    "before by 70": (lambda i, j: j < i - 70, True),
    "turned around": (lambda i, j: i >= j, True),
    "not": (lambda i, j: ~(j > i), True),
    "the last ones": (lambda i, j: i - j < 4, False),
    "the other side": (lambda i, j: j >= i, False),
    "one": (lambda i, j: j == i, False),
    "twice as far": (lambda i, j: j <= 2 * i, False),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_on_positions(name):
    """Whatever the condition is, results are right; the loop over keys ends early where that is safe to say."""
    condition, ends_early = CONDITIONS[name]
    q, k, v = _inputs(100, 150, 8, 8, torch.float32, heads=1)

    def function(q, k, v):
        i, j = torch.arange(100)[:, None], torch.arange(150)
        scores = torch.where(condition(i, j), q @ k.transpose(-1, -2), -math.inf)
        return torch.softmax(scores, -1) @ v

    executable = _check(function, q, k, v)
    constant_end = re.search(r"scf.for %\w+ = %c0 to %c150 ", executable.ir("gpu"))
    assert (constant_end is None) == ends_early


def test_must_not_fire():
    """Weights that are returned, too; few queries; float64; a query that is too long; another softmax."""
    q, k, v = _inputs(20, 30, 16, 16, torch.float32)

    def with_weights(q, k, v):
        weights = torch.softmax(q @ k.transpose(-1, -2), -1)
        return weights @ v, weights

    for function, args in (
        (with_weights, (q, k, v)),
        (_attention(), (q[:, :, :3], k, v)),
        (_attention(), (q.double(), k.double(), v.double())),
        (_attention(), _inputs(20, 30, 600, 16, torch.float32)),
        (lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2), -2) @ v, (q, k, v)),
        (lambda q, k, v: (q @ k.transpose(-1, -2)).exp() @ v, (q, k, v)),
    ):
        executable = pipeline.compile(Function(function), tuple(args), target="cuda:sm_80")
        compare(executable(*args), function(*args), 1e-3)
        assert not any(one.pass_name == "mark-flash-attention" and one.kind == "passed" for one in executable.remarks)


def test_number_of_keys_known_at_run_time():
    """Must not fire."""
    q, k, v = _inputs(20, 30, 16, 16, torch.float32)
    keys = torch.export.Dim("keys", min=2)
    model, shapes = Function(_attention()), ((None, {2: keys}, {2: keys}),)
    executable = pipeline.compile(model, (q, k, v), target="cuda:sm_80", dynamic_shapes=shapes)
    compare(executable(q, k, v), model(q, k, v), 1e-5)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.attention(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_multihead_attention(dtype):
    model, x = Block().eval().requires_grad_(False).to(dtype), _randn(2, 40, 32, dtype=dtype)
    executable = pipeline.compile(model, (x,), target="cuda:sm_80")
    compare(executable(x), model(x), 1e-5 if dtype == torch.float32 else 2e-2)
    assert any(one.pass_name == "mark-flash-attention" and one.kind == "passed" for one in executable.remarks)


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [64, 128])
def test_ptxas_takes_it(width, dtype, architecture):
    """With no spills; 16-bit floats on tensor cores, tiles by cp.async."""
    args = [torch.zeros(1, 4, 256, width, dtype=dtype)] * 3
    executable = pipeline.compile(Function(_attention(is_causal=True)), tuple(args), target=f"cuda:sm_{architecture}")
    text = executable.ir("ptx")
    assert ("mma.sync.aligned.m16n8k16" in text) == ("cp.async.cg" in text) == (dtype != torch.float32)
    assert ".local" not in text and not re.search(r"^\s*call", text, re.M)
    if ptx.can_assemble(architecture):
        _, said = ptx.assemble(text, architecture)
        assert all(int(count) == 0 for count in re.findall(r"(\d+) bytes spill", said))
        assert all(int(count) <= 48 * 1024 for count in re.findall(r"(\d+) bytes smem", said))


def test_before_sm_80():
    """Without tensor cores."""
    executable = _check(_attention(), *_inputs(33, 40, 16, 16, torch.float16), target="cuda:sm_75")
    assert "mma.sync" not in executable.ir("ptx")
