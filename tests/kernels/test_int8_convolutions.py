"""Convolutions of quantized data and weights: sums of products of bytes, for all forms, signs and zero points."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from host import DOTS, runs
from torch import nn

import pipeline

BOUNDS = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


@dataclass(frozen=True)
class Form:
    """A convolution: its channels, window and groups, and the types of its data and weight."""

    channels: int
    filters: int
    window: tuple[int, int] = (3, 3)
    stride: int = 1
    padding: int = 1
    dilation: int = 1
    groups: int = 1
    data: torch.dtype = torch.uint8
    weight: torch.dtype = torch.int8
    per_channel: bool = True
    data_zero: int = 0
    weight_zeros: bool = False
    bias: bool = True

    @property
    def is_told(self) -> bool:
        """Whether it has so many weights for each scale that it is seen to be quantized."""
        return self.channels // self.groups * self.window[0] * self.window[1] >= 8 or not self.per_channel


class Quantized(nn.Module):
    """A convolution of bytes that are dequantized, as PT2E writes it, with an elementwise op behind it."""

    def __init__(self, form: Form):
        super().__init__()
        low, high = BOUNDS[form.weight]
        shape = (form.filters, form.channels // form.groups, *form.window)
        scales = (form.filters, 1, 1, 1) if form.per_channel else (1, 1, 1, 1)
        self.form = form
        self.register_buffer("q", torch.randint(low, high + 1, shape, dtype=form.weight))
        self.register_buffer("scale", torch.rand(scales) / 100 + 0.001)
        self.register_buffer("zero", torch.randint(low, high + 1, scales) if form.weight_zeros else None)
        self.register_buffer("bias", torch.randn(form.filters) if form.bias else None)

    def weight(self, kind: torch.dtype) -> torch.Tensor:
        """The weight that the layer stands for."""
        whole = self.q.to(kind) if self.zero is None else self.q.to(kind) - self.zero.to(kind)
        return whole * self.scale.to(kind)

    def data(self, x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
        """The data that bytes stand for."""
        return (x.to(kind) - self.form.data_zero) * 0.02

    def convolved(self, x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
        """What the convolution is of these."""
        form, bias = self.form, None if self.bias is None else self.bias.to(kind)
        steps = (form.stride, form.padding, form.dilation, form.groups)
        return nn.functional.conv2d(self.data(x, kind), self.weight(kind), bias, *steps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolved(x, torch.float32).relu()


class All(nn.Module):
    """Several convolutions, each of its own data."""

    def __init__(self, forms: list[Form]):
        super().__init__()
        self.layers = nn.ModuleList(Quantized(form) for form in forms)

    def forward(self, *data: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self.layers, data, strict=True)]


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def inputs(forms: list[Form], batch: int = 1, size: tuple[int, int] = (9, 11)) -> list[torch.Tensor]:
    """Bytes for each of the forms."""
    return [
        torch.randint(*(BOUNDS[form.data][0], BOUNDS[form.data][1] + 1), (batch, form.channels, *size), dtype=form.data)
        for form in forms
    ]


def contracted(executable: pipeline.Executable) -> int:
    """How many convolutions add up products of bytes."""
    found = (remark for remark in executable.remarks if remark.pass_name == "contract-in-int8")
    return len([remark for remark in found if remark.kind == "passed"])


def check(model: All, executable: pipeline.Executable, data: list[torch.Tensor]) -> None:
    """Results are those of the integers."""
    for layer, x, got in zip(model.layers, data, executable(*data), strict=True):
        exact = layer.convolved(x, torch.float64).relu()
        assert got.shape == exact.shape
        if got.numel():
            error = (got.double() - exact).abs().max() / exact.abs().max().clamp(min=1)
            assert error < 1e-6, (layer.form, float(error))


def run(forms: list[Form], batch: int = 1, expected: int | None = None) -> None:
    """Compiles the forms as one program, and checks what it computes."""
    model, data = All(forms).eval(), inputs(forms, batch)
    executable = pipeline.compile(model, tuple(data), num_threads=1)
    assert contracted(executable) == (sum(form.is_told for form in forms) if expected is None else expected) * DOTS
    check(model, executable, data)


@pytest.mark.parametrize("channels", [1, 2, 3, 5, 17, 64])
def test_channels_and_windows(channels: int) -> None:
    windows = [((1, 1), 0), ((3, 3), 1), ((2, 3), 0), ((7, 1), 3)]
    run([
        Form(channels, filters, window, padding=padding, data_zero=7)
        for filters in (2, 5, 17, 64)
        for window, padding in windows
    ])  # fmt: skip


@pytest.mark.parametrize("weight", BOUNDS, ids=str)
@pytest.mark.parametrize("data", BOUNDS, ids=str)
def test_signs_and_zero_points(data: torch.dtype, weight: torch.dtype) -> None:
    choices = itertools.product((False, True), (False, True), (0, 23))
    forms = [
        Form(
            channels, 40, data=data, weight=weight, per_channel=each, weight_zeros=zeros, data_zero=zero, groups=groups
        )
        for each, zeros, zero in choices
        for channels, groups in ((6, 1), (40, 40))
    ]
    run(forms)


def test_steps() -> None:
    choices = [(stride, padding, dilation) for stride in (1, 2, 3) for padding in (0, 1, 2) for dilation in (1, 2)]
    run([Form(8, 20, (3, 3), *steps, data_zero=130) for steps in choices], batch=2)


def test_depthwise() -> None:
    choices = [(stride, padding, dilation) for stride in (1, 2) for padding in (0, 2) for dilation in (1, 2)]
    sizes = [(3, (3, 3)), (16, (5, 5)), (33, (3, 2)), (64, (3, 3))]
    run([
        Form(channels, channels, window, *steps, groups=channels, data_zero=11)
        for channels, window in sizes
        for steps in choices
    ], batch=2)  # fmt: skip


def test_batches_that_change() -> None:
    forms = [Form(5, 17, data_zero=3), Form(16, 16, groups=16), Form(9, 32, (1, 1), padding=0, weight_zeros=True)]
    model = All(forms).eval()
    shapes = (({0: torch.export.Dim("batch", max=8)},) * len(forms),)
    data = inputs(forms, batch=3)
    executable = pipeline.compile(model, tuple(data), dynamic_shapes=shapes, num_threads=1)
    assert contracted(executable) == len(forms) * DOTS
    for batch in (0, 1, 2, 5):
        check(model, executable, inputs(forms, batch))


def test_threads_share_images() -> None:
    forms = [Form(16, 48, data_zero=3), Form(32, 32, groups=32)]
    model, data = All(forms).eval(), inputs(forms, 2)
    one, two = (pipeline.compile(model, tuple(data), num_threads=threads)(*data) for threads in (1, 2))
    assert all(map(torch.equal, one, two))


def test_weights_that_change_are_prepared_again() -> None:
    forms = [Form(16, 64, data_zero=9), Form(3, 8, data_zero=9)]
    model, data = All(forms).eval(), inputs(forms)
    executable = pipeline.compile(model, tuple(data), num_threads=1)
    check(model, executable, data)
    for layer in model.layers:
        layer.q.copy_(layer.q.flip(0))
    check(model, executable, data)


def test_other_ranks() -> None:
    """Lines and volumes are convolved in bytes, too."""
    line, volume = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((6, 8, 3), (5, 4, 2, 3, 2)))

    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first = nn.functional.conv1d((x.float() - 5) * 0.5, line.float() * 0.25, padding=1)
        return first, nn.functional.conv3d((y.float() - 5) * 0.5, volume.float() * 0.25, padding=1)

    data = (
        torch.randint(0, 256, (2, 8, 13), dtype=torch.uint8),
        torch.randint(0, 256, (1, 4, 4, 5, 6), dtype=torch.uint8),
    )
    executable = pipeline.compile(function, data, num_threads=1)
    assert contracted(executable) == 2 * DOTS
    for got, exact in zip(executable(*data), function(*data), strict=True):
        torch.testing.assert_close(got, exact, rtol=1e-5, atol=1e-2)


def test_bytes_travel_between_convolutions() -> None:
    """What one convolution rounds to bytes another one reads; a residual is added to the sums."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            shapes = ((24, 16, 3, 3), (24, 1, 3, 3), (16, 24, 1, 1))
            self.weights = nn.ParameterList(
                nn.Parameter(torch.randint(-128, 128, shape, dtype=torch.int8), requires_grad=False) for shape in shapes
            )

        def forward(self, x: torch.Tensor, kind: torch.dtype = torch.float32) -> torch.Tensor:
            first, middle, last = (weight.to(kind) * 0.01 for weight in self.weights)
            data = (x.to(kind) - 3) * 0.02
            y = nn.functional.conv2d(data, first, padding=1).relu()
            y = (rounded(y, 0.02, 5).to(kind) - 5) * 0.02
            y = nn.functional.conv2d(y, middle, padding=1, groups=24).clamp(0, 6)
            y = (rounded(y, 0.025, 0).to(kind) - 0) * 0.025
            return rounded(nn.functional.conv2d(y, last) + data, 0.1, 128)

    def rounded(x: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
        return ((x * (1 / scale)).round() + zero).clamp(0, 255).to(torch.uint8)

    model, x = Block(), torch.randint(0, 256, (2, 16, 10, 10), dtype=torch.uint8)
    executable = pipeline.compile(model, (x,), num_threads=1)
    assert contracted(executable) == 3 * DOTS
    steps = (executable(x).int() - model(x, torch.float64).int()).abs()
    assert steps.max() <= 1
    assert (steps > 0).float().mean() < 0.01


def test_a_border_that_is_no_byte_is_left() -> None:
    """Where zeros around the data are none of its bytes, it is dequantized."""
    run([Form(8, 8, data_zero=300), Form(8, 8, padding=0, data_zero=300)], expected=1)


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_processors_without_dot_products(cpu: str) -> None:
    forms = [Form(8, 24, data_zero=3), Form(8, 8, groups=8)]
    model, data = All(forms).eval(), inputs(forms)
    executable = pipeline.compile(model, tuple(data), cpu=cpu, num_threads=1)
    assert contracted(executable) == 0
    if runs(cpu):
        for got, exact in zip(executable(*data), model(*data), strict=True):
            torch.testing.assert_close(got, exact, rtol=1e-4, atol=1e-3)
