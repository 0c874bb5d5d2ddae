"""Our decompositions agree with the ops that they replace, in results and in layout."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import nn

import pipeline
from pipeline.frontend.capture.capture import capture


class AttentionThenView(nn.Module):
    """Attention whose query lies in memory in another order; its result is viewed as if it lay there too."""

    def __init__(self, order: tuple[int, int, int, int]):
        super().__init__()
        self.order = order

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        back = [self.order.index(dim) for dim in range(4)]
        query = query.permute(self.order).contiguous().permute(back)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        return mixed.permute(self.order).view(-1)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3)])
def test_attention_keeps_the_layout_of_its_query(order: tuple[int, int, int, int]) -> None:
    query, key, value = torch.randn(3, 2, 4, 5, 8)
    model = AttentionThenView(order)
    captured = capture(model, (query, key, value))
    torch.testing.assert_close(captured.module()(query, key, value), model(query, key, value))


def test_multihead_attention_with_a_batch_can_be_captured() -> None:
    model = nn.MultiheadAttention(16, 4).eval()
    x = torch.randn(5, 3, 16)
    captured = capture(model, (x, x, x), {"need_weights": False})
    torch.testing.assert_close(captured.module()(x, x, x, need_weights=False), model(x, x, x, need_weights=False))


class AndOfComparisons(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x > 0) & (y > 0)


def test_operators_with_underscores_are_not_taken_for_in_place_ones() -> None:
    x, y = torch.randn(2, 3, 4)
    executable = pipeline.compile(AndOfComparisons(), (x, y))
    assert torch.equal(executable(x, y), (x > 0) & (y > 0))


class Attention(nn.Module):
    """Attention of few queries to many keys, with a mask."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shared = q.shape[1] != k.shape[1]
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=shared)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("heads", [2, 6])
def test_masked_attention_scales_queries_alone(heads: int, dtype: torch.dtype) -> None:
    """Keys are a cache, of which each step reads all; a row of which the mask leaves nothing is 0."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, count, rows, 24, dtype=dtype) for count, rows in ((heads, 3), (2, 40), (2, 40)))
    mask = torch.where(torch.rand(1, 1, 3, 40) < 0.3, float("-inf"), torch.randn(1, 1, 3, 40)).to(dtype)
    mask[:, :, 1] = float("-inf")
    executable = pipeline.compile(Attention(), (q, k, v, mask), fallback="error")
    bound = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(executable(q, k, v, mask), Attention()(q, k, v, mask), rtol=bound, atol=bound)
    generics = re.findall(r"linalg\.generic(.*?)\n    \} -> \(?tensor<([\dx]+)x", executable.ir("linalg"), re.DOTALL)
    multiplied = [math.prod(map(int, shape.split("x"))) for body, shape in generics if "arith.mulf" in body]
    assert multiplied and max(multiplied) < k.numel()
