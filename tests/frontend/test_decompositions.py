"""Our decompositions agree with the ops that they replace, in results and in layout."""

from __future__ import annotations

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
