"""A view that merges dims of sizes that are known at run time only."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

import pipeline


class Rows(nn.Module):
    def forward(self, x, w):
        return (x.view(-1, x.shape[2]) @ w).relu()


class Sizes(nn.Module):
    def forward(self, x, w):
        return x.view(x.shape[0] * x.shape[1], 16) + 1


@pytest.mark.parametrize("model", [Rows(), Sizes()], ids=["rows", "sizes"])
def test_merged_dims(model):
    """Without the workaround for ConvertAtenViewOp the second size becomes 1, and memory is corrupted."""
    sizes = {0: Dim("b", max=64), 1: Dim("s", max=64)}
    executable = pipeline.compile(model, (torch.randn(3, 5, 16), torch.randn(16, 8)), dynamic_shapes=(sizes, None))
    for batch, length in ((3, 5), (1, 7), (8, 1), (0, 4)):
        x, w = torch.randn(batch, length, 16), torch.randn(16, 8)
        torch.testing.assert_close(executable(x, w), model(x, w))
