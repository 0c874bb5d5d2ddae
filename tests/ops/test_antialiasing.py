"""Resizing with `antialias=True`, as torchvision's transforms and position embeddings of vision models do it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from dynamo_state import fresh_dynamo
from torch.export import Dim

import pipeline
from pipeline.errors import PipelineError

__all__ = ["fresh_dynamo"]

MODES = ["bilinear", "bicubic", "lanczos"]

#: Sizes, and what interpolate is asked for. A wide row of few taps is summed by taps, others are products.
OPTIONS = {
    "larger": ((6, 7), {"size": (9, 13)}),
    "smaller": ((6, 7), {"size": (3, 2)}),
    "to one row": ((5, 6), {"size": (1, 2)}),
    "of one": ((1, 1), {"size": (3, 4)}),
    "factors": ((6, 7), {"scale_factor": (1.7, 0.6)}),
    "factors of sizes": ((6, 7), {"scale_factor": 0.4, "recompute_scale_factor": True}),
    "as it is": ((6, 7), {"size": (6, 7)}),
    "width as it is": ((6, 7), {"size": (11, 7)}),
    "by taps": ((97, 131), {"size": (61, 73)}),
    "rows by taps": ((131, 5), {"size": (53, 9)}),
    "columns by taps": ((6, 200), {"scale_factor": (0.5, 0.7)}),
}


class Resized(torch.nn.Module):
    def __init__(self, mode, **options):
        super().__init__()
        self.options = {"mode": mode, **options, "antialias": True}

    def forward(self, x):
        return F.interpolate(x, **self.options)


def images(sizes, dtype=torch.float32, channels=3):
    numbers = torch.randint(0, 256, (2, channels, *sizes), generator=torch.Generator().manual_seed(1))
    return numbers.to(dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPTIONS)
def test_numbers_are_those_of_eager(mode, name):
    sizes, options = OPTIONS[name]
    model = Resized(mode, **options)

    def of_every_dtype(single, double, few, many, interleaved):
        return model(single), model(double), model(few), model(many), model(interleaved)

    arguments = (
        images(sizes) / 255,
        images(sizes, torch.float64) / 255,
        images(sizes, torch.uint8),
        images(sizes, torch.uint8, channels=8),  # eager has kernels of its own for up to four channels
        (images(sizes, channels=5) / 255).contiguous(memory_format=torch.channels_last),
    )
    results = pipeline.compile(of_every_dtype, arguments, fallback="error")(*arguments)
    single, double, few, many, interleaved = of_every_dtype(*arguments)
    torch.testing.assert_close(results[0], single, rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(results[1], double, rtol=1e-12, atol=1e-13)
    assert torch.equal(results[2], few) and torch.equal(results[3], many)
    torch.testing.assert_close(results[4], interleaved, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("mode", MODES)
def test_corners_that_are_aligned(mode):
    """F.interpolate asks it of no mode but these; lanczos has it by its op alone."""
    op = getattr(torch.ops.aten, f"_upsample_{mode}2d_aa").default
    for size in ((9, 3), (1, 4), (4, 2)):
        x = images((6, 7)) / 255
        exe = pipeline.compile(lambda x, size=size: op(x, size, True), (x,), fallback="error")
        torch.testing.assert_close(exe(x), op(x, size, True), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("mode", MODES)
def test_one_column(mode):
    """Eager takes a result of one column for one of rows, and gives all of them the first one's numbers."""
    x = images((6, 7)) / 255
    for height in (2, 4, 9):
        rows = Resized(mode, size=(height, 7))(x)
        expected = Resized(mode, size=(1, height))(rows.mT.contiguous()).mT
        exe = pipeline.compile(Resized(mode, size=(height, 1)), (x,), fallback="error")
        torch.testing.assert_close(exe(x), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["larger", "smaller", "factors", "by taps"])
@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode, name):
    sizes, options = OPTIONS[name]
    model = Resized(mode, **options)
    x, expected = (torch.rand(2, 3, *sizes, dtype=torch.float64).requires_grad_() for _ in range(2))
    expected.data.copy_(x)
    compiled = torch.compile(model, backend="pipeline", options={"fallback": "error"})
    compiled(x).sin().sum().backward()
    model(expected).sin().sum().backward()
    torch.testing.assert_close(x.grad, expected.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [{"size": (5, 9)}, {"scale_factor": 0.7}, {"scale_factor": (2, 0.3)}], ids=str)
def test_symbolic_sizes(mode, options):
    """Those of the image, and of the result with them; the executable is right for each size."""
    model = Resized(mode, **options)
    dims = ({2: Dim("height", min=8, max=300), 3: Dim("width", min=8, max=300)},)
    exe = pipeline.compile(model, (torch.rand(1, 3, 13, 17),), dynamic_shapes=dims, fallback="error")
    for sizes in ((13, 17), (8, 9), (8, 90), (97, 150)):
        x = torch.rand(1, 3, *sizes)
        torch.testing.assert_close(exe(x), model(x), rtol=1e-5, atol=4e-6)


def test_gradients_of_symbolic_sizes():
    model = Resized("bicubic", size=(5, 9))
    compiled = torch.compile(model, backend="pipeline", dynamic=True, options={"fallback": "error"})
    for sizes in ((13, 17), (4, 20)):
        x = torch.rand(2, 3, *sizes, dtype=torch.float64).requires_grad_()
        expected = x.detach().clone().requires_grad_()
        compiled(x).sin().sum().backward()
        model(expected).sin().sum().backward()
        torch.testing.assert_close(x.grad, expected.grad, rtol=1e-10, atol=1e-12)


def test_no_images():
    model, x = Resized("bilinear", size=(5, 9)), torch.rand(0, 3, 13, 17)
    assert pipeline.compile(model, (x,), fallback="error")(x).shape == (0, 3, 5, 9)


def test_integers_are_an_error():
    """As in eager mode, to which they are left."""
    model, x = Resized("bilinear", size=(5, 9)), images((13, 17), torch.int32)
    with pytest.raises(NotImplementedError):
        model(x)
    with pytest.raises(PipelineError, match="_upsample_bilinear2d_aa"):
        pipeline.compile(model, (x,), fallback="torch")(x)


def test_bytes_of_unknown_sizes_are_an_error():
    model, x = Resized("bilinear", size=(5, 9)), images((13, 17), torch.uint8)
    with pytest.raises(PipelineError, match="interpolation of uint8 needs sizes known in advance"):
        pipeline.compile(model, (x,), dynamic_shapes=({2: Dim("height", min=2, max=64)},))
