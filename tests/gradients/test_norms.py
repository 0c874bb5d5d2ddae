"""Gradients of norms of 16 bits, whose statistics are kept in float32."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

NORMS = {
    "layer": (lambda: nn.LayerNorm(24), (6, 24)),
    "group": (lambda: nn.GroupNorm(2, 6), (3, 6, 4, 5)),
    "batch": (lambda: nn.BatchNorm2d(6), (4, 6, 4, 5)),
    "batch, no weights": (lambda: nn.BatchNorm1d(6, affine=False, track_running_stats=False), (9, 6)),
    "instance": (lambda: nn.InstanceNorm2d(6, affine=True), (2, 6, 4, 5)),
    "rms": (lambda: nn.RMSNorm(24), (6, 24)),
}


@pytest.mark.parametrize("weights", [torch.bfloat16, torch.float32], ids=["bf16", "mixed"])
@pytest.mark.parametrize(("make", "shape"), NORMS.values(), ids=NORMS)
def test_gradients(make, shape, weights):
    torch.manual_seed(0)
    model = make()
    for parameter in model.parameters():
        nn.init.normal_(parameter, 1.0, 0.5)
    exact = copy.deepcopy(model).double()
    if isinstance(model, nn.RMSNorm):
        weights = torch.bfloat16  # eager takes no mixed types
    model = model.to(weights)
    x, g = (torch.randn(shape, generator=torch.Generator().manual_seed(n)) * 3 + 5 * n for n in (1, 0))
    x, g = x.bfloat16(), g.bfloat16()

    def run(function, model, dtype):
        leaf = x.to(dtype, copy=True).requires_grad_()
        result = function(leaf)
        result.backward(g.to(result.dtype))
        return [result.detach(), leaf.grad, *(parameter.grad for parameter in model.parameters())]

    for ours, theirs in zip(
        run(torch.compile(model, backend="pipeline"), model, torch.bfloat16),
        run(exact, exact, torch.float64),
        strict=True,
    ):
        scale = theirs.abs().max().item()
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=0.02 * scale)
