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


STATISTICS = {
    "layer": lambda x, w, b: torch.native_layer_norm(x.transpose(1, 2), (6,), w, b, 1e-5),
    "group": lambda x, w, b: torch.native_group_norm(x, w, b, 2, 6, 5, 2, 1e-5),
    "batch": lambda x, w, b: torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_that_are_returned(name, dtype):
    """They have eager's dtypes, and gradients of all results are near those in float64."""
    torch.manual_seed(0)
    arguments = [torch.randn(shape, dtype=dtype) for shape in ((2, 6, 5), (6,), (6,))]

    def results(function, arguments):
        leaves = [argument.clone().requires_grad_() for argument in arguments]
        values = function(*leaves)
        gradients = torch.autograd.grad(sum(value.sum() * scale for scale, value in enumerate(values, 1)), leaves)
        return [*(value.detach() for value in values), *gradients]

    eager = results(STATISTICS[name], arguments)
    ours = results(torch.compile(STATISTICS[name], backend="pipeline"), arguments)
    assert [result.dtype for result in ours] == [result.dtype for result in eager]
    exact = results(STATISTICS[name], [argument.double() for argument in arguments])
    tolerance = {torch.bfloat16: 0.06, torch.float16: 0.01, torch.float32: 1e-4}[dtype]
    for result, expected in zip(ours, exact, strict=True):
        torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)
