"""Depthwise convolutions and pools against float64: sizes, strides, dilations, pads, both layouts."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pipeline
from pipeline.runtime.native.cpu_features import host_features
from pipeline.targets.cpu.isa import isa

CPUS = [cpu for cpu in ("native", "x86-64") if set(isa(cpu).required) <= host_features()]

#: (channels, height, width, kernel, stride, padding, dilation)
WINDOWS = (
    (5, 9, 33, 3, 1, 1, 1),
    (3, 16, 32, 3, 1, 1, 1),
    (17, 8, 14, 3, 1, 1, 1),
    (4, 1, 40, 3, 1, 1, 1),
    (4, 40, 1, 3, 1, 1, 1),
    (6, 20, 18, 5, 1, 2, 1),
    (2, 30, 47, 7, 1, 3, 1),
    (3, 12, 35, 3, 2, 1, 1),
    (3, 12, 35, 3, 1, 2, 2),
    (3, 12, 35, 2, 1, 1, 1),
    (3, 2, 2, 3, 1, 1, 1),
    (8, 11, 70, (1, 5), (1, 1), (0, 2), 1),
    # with tiles that lie inside of the image, and at each of its borders
    (2, 41, 131, 3, 1, 1, 1),
    (3, 33, 96, 5, 1, 2, 1),
    (1, 50, 160, 7, 1, 3, 1),
    (2, 37, 130, 3, 1, 2, 2),
    (2, 24, 129, 4, 1, (0, 2), 1),
)


class Windows(nn.Module):
    """Depthwise convolutions with what follows them, and pools."""

    def __init__(self, dtype):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(c, c, k, stride, padding, dilation, groups=c) for c, _, _, k, stride, padding, dilation in WINDOWS
        ).to(dtype)

    def forward(self, *images):
        results = []
        for conv, image in zip(self.convs, images, strict=True):
            results += [F.relu(conv(image)), F.max_pool2d(image, 3, 1, 1), F.avg_pool2d(image, 3, 2, 1)]
        return results


@pytest.mark.parametrize("cpu", CPUS)
def test_windows(cpu):
    torch.manual_seed(0)
    model = Windows(torch.float32).eval().requires_grad_(False)
    images = tuple(torch.randn(2, c, h, w) - 1 for c, h, w, *_ in WINDOWS)
    executable = pipeline.compile(model, images, cpu=cpu)
    results = executable(*images)
    exact = model.double()(*(image.double() for image in images))
    for mine, theirs in zip(results, exact, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-5)
    absorbed = [one for one in executable.remarks if one.pass_name == "fold-pads-into-kernels" and one.kind == "passed"]
    assert bool(absorbed) == (isa(cpu).vector_bytes >= 32)


def test_pads_that_differ_at_each_side_and_other_numbers():
    torch.manual_seed(0)

    class Sided(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(7, 7, 3, groups=7)

        def forward(self, x):
            padded = F.pad(x, (2, 1, 0, 3), value=1.5)
            return self.conv(padded), self.conv(F.pad(x, (0, 5, 4, 0))), F.max_pool2d(padded, 2, 1), padded.sum()

    x = torch.randn(1, 7, 12, 21)
    model = Sided().eval().requires_grad_(False)
    for mine, theirs in zip(pipeline.compile(model, (x,))(x), model.double()(x.double()), strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-4)


def test_not_a_number_stays_where_it_is():
    """What is masked is not computed with: neither infinities nor NaN around a row get into it."""
    model = nn.Conv2d(4, 4, 3, padding=1, groups=4).eval().requires_grad_(False)
    x = torch.randn(1, 4, 6, 37)
    x[0, 1, 0, :2], x[0, 2, 5, 36] = float("nan"), float("inf")
    torch.testing.assert_close(pipeline.compile(model, (x,))(x), model(x), rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("channels", [1, 3, 16, 40])
def test_channels_last(channels):
    """Between convolutions, where images have their channels innermost; pads of strides 1 and 2."""
    torch.manual_seed(0)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 2 * channels, 1)
            self.wide = nn.Conv2d(2 * channels, 2 * channels, 3, padding=1, groups=2 * channels)
            self.stride = nn.Conv2d(2 * channels, 2 * channels, 3, 2, padding=1, groups=2 * channels)
            self.last = nn.Conv2d(2 * channels, 3, 1)

        def forward(self, x):
            y = F.relu(self.wide(self.first(x)))
            return self.last(self.stride(y)), F.max_pool2d(y, 3, 2, 1)

    model = Network().eval().requires_grad_(False)
    x = torch.randn(1, 3, 15, 22)
    for mine, theirs in zip(pipeline.compile(model, (x,))(x), model.double()(x.double()), strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-5)


def test_float64_and_dynamic_sizes():
    torch.manual_seed(0)
    model = nn.Conv2d(5, 5, 3, padding=1, groups=5).eval().requires_grad_(False)
    height = torch.export.Dim("height", min=2)
    executable = pipeline.compile(model, (torch.randn(1, 5, 9, 30),), dynamic_shapes={"input": {2: height}})
    x = torch.randn(1, 5, 14, 30)
    torch.testing.assert_close(executable(x), model(x), rtol=1e-5, atol=1e-5)
    model, x = model.double(), x.double()
    torch.testing.assert_close(pipeline.compile(model, (x,))(x), model(x))


#: (channels, length, kernel, stride, padding, dilation)
LINES = (
    (5, 33, 3, 1, 1, 1),
    (16, 1, 4, 1, 3, 1),
    (48, 70, 4, 1, 3, 1),
    (2, 64, 31, 1, 15, 1),
    (33, 17, 5, 2, 2, 1),
    (8, 40, 3, 1, 4, 4),
    (4, 9, 9, 1, 0, 1),
)


class Lines(nn.Module):
    """Depthwise convolutions of lines as Mamba has them: causal, with channels first and last, of strided views."""

    def __init__(self, dtype):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv1d(c, c, k, stride, padding, dilation, groups=c) for c, _, k, stride, padding, dilation in LINES
        ).to(dtype)

    def forward(self, *lines):
        results = []
        for conv, line in zip(self.convs, lines, strict=True):
            results.append(F.silu(conv(line)[..., : line.shape[-1]]))
            results.append(F.silu(conv(line.mT.contiguous().mT)).mT)
            results.append(conv(line[..., ::2].repeat(1, 1, 2)))
        return results


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 0.02)])
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_lines(batch, dtype, error, cpu):
    torch.manual_seed(0)
    model = Lines(dtype).eval().requires_grad_(False)
    lines = tuple(torch.randn(batch, c, length).to(dtype) for c, length, *_ in LINES)
    results = pipeline.compile(model, lines, cpu=cpu)(*lines)
    exact = model.double()(*(line.double() for line in lines))
    for mine, theirs in zip(results, exact, strict=True):
        assert mine.dtype == dtype
        torch.testing.assert_close(mine.double(), theirs, rtol=error, atol=error)


def test_lines_with_channels_first_are_not_transposed():
    conv = nn.Conv1d(256, 256, 4, padding=3, groups=256)
    first = pipeline.compile(conv, (torch.randn(1, 256, 512),))
    assert not any("channels last" in one.reason for one in first.remarks)
    last = pipeline.compile(nn.Sequential(Turned(), conv, Turned()), (torch.randn(1, 512, 256),))
    assert any("channels last" in one.reason for one in last.remarks)


class Turned(nn.Module):
    def forward(self, x):
        return x.mT
