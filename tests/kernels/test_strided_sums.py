"""Sums over rows of both operands, cut outside of the tiles: as exact as eager, with all that stands around them."""

from __future__ import annotations

import pytest
import torch
from dynamo_state import fresh_dynamo
from function_model import Function

import pipeline
import pipeline.frontend.gradients.tap_products_op

__all__ = ["fresh_dynamo"]

CUT = "sums cut outside"


def tap_products(taps=(3, 3), stride=(1, 1), dilation=(1, 1)):
    return lambda x, g: torch.ops.pipeline.tap_products(x, g, taps, stride, dilation, False)


def operands(places, inputs, outputs, taps=(3, 3), stride=(1, 1), dilation=(1, 1), dtype=torch.float32, rows=3):
    torch.manual_seed(0)
    sizes = [(p - 1) * s + (t - 1) * d + 1 for p, t, s, d in zip(places, taps, stride, dilation, strict=True)]
    return torch.randn(rows, *sizes, inputs, dtype=dtype), torch.randn(rows, *places, outputs, dtype=dtype)


def check(function, *args, **options):
    """Compares with float64, and says whether sums were cut."""
    executable = pipeline.compile(Function(function), args, **options)
    exact = function(*[arg.double() for arg in args])
    tolerance = 1e-12 if args[0].dtype == torch.float64 else 2e-6
    scale = float(exact.abs().max()) if exact.numel() else 1.0
    torch.testing.assert_close(executable(*args).double(), exact, rtol=tolerance, atol=tolerance * scale)
    return any(CUT in remark.reason for remark in executable.remarks)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("places", "inputs", "outputs"),
    [
        ((17, 19), 33, 67),
        ((9, 70), 64, 70),
        ((1, 300), 16, 64),
        ((4, 4), 40, 129),
        ((2, 2), 50, 257),
        ((65, 1), 17, 64),
    ],
)
def test_sizes(places, inputs, outputs, dtype, threads):
    """Of sizes that fill tiles and blocks, and that leave rests of rows, terms and columns; short sums, too."""
    assert check(tap_products(), *operands(places, inputs, outputs, dtype=dtype), num_threads=threads)


def test_threads_have_panels_of_their_own():
    """One block of rows, so that what threads share is the taps: each fills a panel, and no other reads that."""
    args = operands((65, 1), 17, 64)
    executable = pipeline.compile(Function(tap_products()), args, num_threads=2)
    assert any("shared by threads" in remark.reason for remark in executable.remarks)
    first = executable(*args)
    assert all(torch.equal(executable(*args), first) for _ in range(500))


@pytest.mark.parametrize(
    ("taps", "stride", "dilation"),
    [((1, 1), (2, 2), (1, 1)), ((3, 2), (2, 1), (1, 3)), ((5,), (3,), (2,)), ((2, 1, 3), (1, 2, 1), (1, 1, 2))],
)
def test_windows(taps, stride, dilation):
    places = (7, 9, 5)[: len(taps)]
    args = operands(places, 48, 64, taps, stride, dilation)
    assert check(tap_products(taps, stride, dilation), *args)


AROUND = {
    "turned": lambda sums, w: sums.permute(0, 3, 1, 2).contiguous(),
    "added": lambda sums, w: sums + w,
    "scaled": lambda sums, w: (sums * 0.5 + w).relu(),
    "in its place": lambda sums, w: (w * 2).add_(sums),
    "two uses": lambda sums, w: sums.tanh() + sums.sum(),
}


@pytest.mark.parametrize("around", AROUND)
def test_what_stands_around(around):
    """Epilogues run behind the last block alone."""
    args = operands((12, 11), 24, 64)
    products, epilogue = tap_products(), AROUND[around]
    assert check(lambda x, g, w: epilogue(products(x, g), w), *args, torch.randn(64, 3, 3, 24))


def test_groups():
    torch.manual_seed(0)
    x, g = torch.randn(2, 14, 14, 2, 32), torch.randn(2, 12, 12, 2, 64)
    assert check(tap_products(), x, g)


def test_pads_that_are_not_made():
    def function(x, g):
        return tap_products()(torch.nn.functional.pad(x, (0, 0, 1, 1, 1, 1)), g)

    torch.manual_seed(0)
    assert check(function, torch.randn(2, 20, 20, 32), torch.randn(2, 20, 20, 64))


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 4), (1, 1), (0, 64), (16, 0)])
def test_few_channels_are_not_cut(inputs, outputs):
    assert not check(tap_products(), *operands((6, 6), inputs, outputs))


def test_convolutions_are_not_cut():
    """What is summed lies side by side in one operand: a tile reads it as it lies."""
    torch.manual_seed(0)
    assert not check(torch.nn.functional.conv2d, torch.randn(2, 64, 20, 20), torch.randn(64, 64, 3, 3) / 24)


def test_gradients_of_convolutions():
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(5, 64, 3, padding=1), torch.nn.Conv2d(64, 66, 3, stride=2, padding=1)
    model = torch.nn.Sequential(*layers).train()
    x = torch.randn(2, 5, 23, 21)
    compiled = torch.compile(model, backend="pipeline")
    compiled(x).square().mean().backward()
    remarks = [remark.reason for one in pipeline.executables(compiled) for remark in one.remarks]
    assert any(CUT in reason for reason in remarks)
    found = [parameter.grad.double() for parameter in model.parameters()]
    model.zero_grad()
    model.double()(x.double()).square().mean().backward()
    for mine, parameter in zip(found, model.parameters(), strict=True):
        scale = float(parameter.grad.abs().max())
        torch.testing.assert_close(mine, parameter.grad, rtol=2e-6, atol=2e-6 * scale)
