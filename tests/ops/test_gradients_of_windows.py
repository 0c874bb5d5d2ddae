"""Gradients of pools and of resizing, as torch's own graphs of backward have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.export import Dim
from torch.fx.experimental.proxy_tensor import make_fx

import pipeline


def _average(*options: Any, **named: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: F.avg_pool2d(x, *options, **named)


def _resized(mode: str, **named: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: F.interpolate(x, mode=mode, **named)


IMAGE, PLANES, VOLUME = (2, 3, 7, 5), (3, 7, 5), (1, 2, 4, 3, 5)

#: What is differentiated, and the shape of its operand.
FORWARD: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], tuple[int, ...]]] = {
    "average": (_average(3, 2, 1), IMAGE),
    "average, ceil, without pads": (_average(3, 2, 1, ceil_mode=True, count_include_pad=False), IMAGE),
    "average, ceil": (_average((3, 2), 2, 1, ceil_mode=True), IMAGE),
    "average, divisor": (_average(2, divisor_override=3), PLANES),
    "average 1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), PLANES),
    "average 3d": (lambda x: F.avg_pool3d(x, 2), VOLUME),
    "adaptive average": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), IMAGE),
    "adaptive average 3d": (lambda x: F.adaptive_avg_pool3d(x, 2), VOLUME),
    "maximum": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), IMAGE),
    "maximum, unbatched": (lambda x: F.max_pool2d(x, 3, 1, 1), PLANES),
    "maximum 3d": (lambda x: F.max_pool3d(x, 2), VOLUME),
    "adaptive maximum": (lambda x: F.adaptive_max_pool2d(x, (3, 2)), IMAGE),
    "nearest": (_resized("nearest", scale_factor=1.7), IMAGE),
    "nearest 1d": (_resized("nearest", size=4), PLANES),
    "nearest exact": (_resized("nearest-exact", size=(4, 9)), IMAGE),
    "linear": (_resized("linear", scale_factor=2.0), PLANES),
    "bilinear": (_resized("bilinear", scale_factor=1.6), IMAGE),
    "bilinear, corners": (_resized("bilinear", size=(4, 9), align_corners=True), IMAGE),
    "bicubic": (_resized("bicubic", size=(3, 8)), IMAGE),
    "trilinear": (_resized("trilinear", size=(3, 5, 1)), VOLUME),
    "softshrink": (F.softshrink, PLANES),
    "hardshrink": (F.hardshrink, PLANES),
}


def _gradient(forward: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    def gradient(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(forward(x), x, g)[0]

    return gradient


@pytest.mark.parametrize("name", FORWARD)
def test_gradients(name: str) -> None:
    """Graphs of backward are compiled as a whole, in float32 and float64, and give what eager gives in float64."""
    forward, shape = FORWARD[name]
    gradient = _gradient(forward)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    g = torch.randn_like(forward(x))
    arguments = g, x, g.double(), x.double()
    graph = make_fx(lambda g, x, g64, x64: (gradient(g, x), gradient(g64, x64)))(*arguments)
    single, double = pipeline.compile(graph, arguments, fallback="error")(*arguments)
    expected = gradient(g.double(), x.double())
    torch.testing.assert_close(single.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(double, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["average", "adaptive average", "bilinear, corners", "maximum, unbatched"])
def test_gradients_of_symbolic_sizes(name: str) -> None:
    forward, shape = FORWARD[name]
    x = torch.randn(shape)
    g = torch.randn_like(forward(x))
    graph = make_fx(_gradient(forward), tracing_mode="symbolic")(g, x)
    sizes = tuple(dict.fromkeys(range(one.dim()), Dim.AUTO) for one in (g, x))
    executable = pipeline.compile(graph, (g, x), dynamic_shapes=sizes, fallback="error")
    for more in (0, 2, 5):
        x = torch.randn([*shape[:-2], shape[-2] + more, shape[-1] + 2 * more])
        g = torch.randn_like(forward(x))
        torch.testing.assert_close(executable(g, x), _gradient(forward)(g, x), rtol=1e-5, atol=1e-5)


def test_gradients_of_bfloat16_are_summed_in_float32() -> None:
    x = torch.randn(1, 1, 40, 40).bfloat16()
    g = torch.randn(1, 1, 38, 38).bfloat16()
    gradient = _gradient(lambda x: F.max_pool2d(x, 3, 1))
    executable = pipeline.compile(make_fx(gradient)(g, x), (g, x), fallback="error")
    exact = gradient(g.double(), x.double())
    torch.testing.assert_close(executable(g, x), exact.bfloat16())
