"""Transposed convolutions against float64: phases of steps, windows, groups and channels of all kinds, every ISA."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import pipeline
from pipeline.runtime.native.cpu_features import host_features
from pipeline.targets.cpu.isa import isa

CPUS = [cpu for cpu in ("native", "x86-64", "x86-64-v3") if set(isa(cpu).required) <= host_features()]

LAYERS = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}

#: (shape of the data, channels of the result, kernel, stride, padding, output padding, groups, dilation)
WINDOWS = (
    ((2, 5, 9), 17, 4, 2, 1, 0, 1, 1),
    ((1, 3, 5), 40, 16, 8, 4, 0, 1, 1),
    ((1, 3, 5), 4, 7, 5, 1, 3, 1, 1),
    ((2, 4, 1), 9, 3, 3, 0, 0, 1, 2),
    ((1, 3, 33), 1, 5, 4, 0, 2, 1, 1),
    ((1, 16, 7, 9), 32, 4, 2, 1, 0, 1, 1),
    ((2, 16, 8, 8), 64, 2, 2, 0, 0, 1, 1),
    ((1, 8, 5, 6), 24, 3, 2, 1, 1, 1, 1),
    ((1, 8, 5, 6), 33, 3, 2, 1, 0, 1, 1),
    ((1, 4, 4, 3), 10, (4, 3), (2, 1), (1, 0), 0, 1, 1),
    ((1, 4, 4, 3), 10, (2, 5), (1, 3), (0, 2), (0, 1), 1, (2, 1)),
    ((1, 4, 1, 1), 12, 4, 2, 0, 0, 1, 1),
    ((2, 6, 4, 17), 1, 4, 2, 1, 0, 1, 1),
    ((1, 6, 3, 16), 3, 3, 2, 1, 1, 1, 1),
    ((1, 8, 5, 4), 16, 4, 2, 1, 0, 2, 1),
    ((1, 9, 4, 3), 6, 3, 2, 1, 0, 3, 1),
    ((1, 4, 3, 4), 8, 3, 2, 4, 1, 1, 3),
    ((1, 4, 3, 2, 4), 8, 4, 2, 1, 0, 1, 1),
    ((2, 3, 2, 3, 2), 16, 3, 2, 1, 1, 1, 1),
    ((1, 6, 2, 2, 3), 2, (1, 2, 2), (1, 2, 2), 0, 0, 1, 1),
    # filled up, and then packed
    ((1, 161, 4, 5), 48, 3, 2, 0, 0, 1, 1),
    ((1, 64, 4, 3), 24, 5, 3, 0, 0, 1, 1),
    ((1, 40, 2, 3, 3), 16, 5, 2, 0, 0, 1, 1),
    ((1, 96, 3, 3), 64, 7, 4, 0, 0, 2, 1),
)


class Windows(nn.Module):
    """A transposed convolution of each input."""

    def __init__(self, dtype):
        super().__init__()
        self.layers = nn.ModuleList(
            LAYERS[len(shape) - 2](shape[1], results, kernel, stride, padding, more, groups, dilation=dilation)
            for shape, results, kernel, stride, padding, more, groups, dilation in WINDOWS
        ).to(dtype)

    def forward(self, *images):
        return [layer(image) for layer, image in zip(self.layers, images, strict=True)]


def remarks_of(executable, kind):
    return [str(one) for one in executable.remarks if one.pass_name == "transposed-conv-phases" and one.kind == kind]


def check(model, x, tolerance=1e-5, **options):
    """Compiles a model and compares with float64."""
    model = model.eval().requires_grad_(False)
    executable = pipeline.compile(model, (x,), cache=False, **options)
    result = executable(x)
    exact = model.double()(x.double())
    torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=tolerance)
    return executable


@pytest.mark.parametrize(("cpu", "dtype"), [*((cpu, torch.float32) for cpu in CPUS), ("native", torch.float64)])
def test_windows(cpu, dtype):
    torch.manual_seed(0)
    model = Windows(dtype).eval().requires_grad_(False)
    images = tuple(torch.randn(shape, dtype=dtype) for shape, *_ in WINDOWS)
    executable = pipeline.compile(model, images, cpu=cpu)
    results = executable(*images)
    exact = model.double()(*(image.double() for image in images))
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for mine, theirs in zip(results, exact, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=tolerance, atol=tolerance)
    assert len(remarks_of(executable, "passed")) == len(WINDOWS)


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_random_windows(data):
    size, kernel, stride = (data.draw(st.lists(st.integers(1, 6), min_size=2, max_size=2)) for _ in range(3))
    padding = [data.draw(st.integers(0, (size[i] - 1) * stride[i] // 2 + (kernel[i] - 1) // 2)) for i in range(2)]
    more = [data.draw(st.integers(0, stride[i] - 1)) for i in range(2)]
    channels, results = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 40))
    torch.manual_seed(0)
    layer = nn.ConvTranspose2d(channels, results, kernel, stride, padding, more)
    check(nn.Sequential(layer, nn.ReLU()), torch.randn(2, channels, *size))


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (lambda: nn.ConvTranspose2d(4, 5, 3, 2, 1, dilation=2), "have a factor in common"),
        (lambda: nn.ConvTranspose2d(4, 5, 1, 3), "its weight would be 9.0 times as large"),
        (lambda: nn.ConvTranspose2d(8, 2, 4, 2, 1, groups=2), None),
    ],
    ids=["dilation", "few taps", "narrow groups"],
)
def test_refusals(layer, reason):
    torch.manual_seed(0)
    model = layer()
    executable = check(model, torch.randn(2, model.in_channels, 5, 6))
    missed = remarks_of(executable, "missed")
    assert bool(missed) == (reason is not None)
    assert reason is None or reason in missed[0]


def test_computed_weights_stay():
    class Dynamic(nn.Module):
        def forward(self, x, w):
            return torch.nn.functional.conv_transpose2d(x, w, stride=2)

    x, w = torch.randn(1, 4, 5, 6), torch.randn(4, 8, 3, 3)
    executable = pipeline.compile(Dynamic(), (x, w), cache=False)
    torch.testing.assert_close(executable(x, w), Dynamic()(x, w), rtol=1e-5, atol=1e-5)
    assert "its weight is computed" in remarks_of(executable, "missed")[0]


def test_steps_of_one_are_left_alone():
    executable = check(nn.ConvTranspose2d(16, 32, 3, padding=1), torch.randn(1, 16, 8, 8))
    assert not remarks_of(executable, "passed")
    assert not remarks_of(executable, "missed")


def decoder(last=3):
    """As that of a DCGAN."""
    layers = []
    for wide, narrow in ((64, 48), (48, 32)):
        norm = nn.BatchNorm2d(narrow)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        layers += [nn.ConvTranspose2d(wide, narrow, 4, 2, 1, bias=False), norm, nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, last, 4, 2, 1, bias=False), nn.Tanh())


def test_norms_fold_and_layouts_stay():
    torch.manual_seed(0)
    executable = check(decoder(), torch.randn(2, 64, 4, 4))
    folded = [one for one in executable.remarks if one.pass_name == "fold-batch-norm" and one.kind == "passed"]
    assert len(folded) == 2
    fused = [kernel.name for kernel in executable.kernels if kernel.name.startswith("fused_conv2d_add_relu")]
    assert len(fused) == 2
    transposes = [kernel for kernel in executable.kernels if "transpose" in kernel.words]
    assert len(transposes) <= 2  # for the last layer


def test_any_batch():
    torch.manual_seed(0)
    model = decoder().eval().requires_grad_(False)
    batch = torch.export.Dim("batch", min=1, max=64)
    executable = pipeline.compile(model, (torch.randn(2, 64, 4, 4),), dynamic_shapes=({0: batch},), cache=False)
    assert len(remarks_of(executable, "passed")) == 3
    for count in (1, 2, 5):
        x = torch.randn(count, 64, 4, 4)
        torch.testing.assert_close(executable(x), model(x), rtol=2e-5, atol=2e-5)


DYNAMIC = {
    "rows": (lambda: nn.Sequential(nn.ConvTranspose2d(16, 32, 4, 2, 1), nn.ReLU()), (1, 16, None, 7)),
    "image": (lambda: nn.Sequential(nn.Conv2d(4, 16, 1), nn.ConvTranspose2d(16, 24, 3, 2, 1)), (1, 4, None, None)),
    "few channels": (lambda: nn.Sequential(nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh()), (2, 8, 5, None)),
    "line": (lambda: nn.ConvTranspose1d(6, 20, 7, 3, 1, 1, dilation=2), (2, 6, None)),
    "groups": (lambda: nn.ConvTranspose2d(8, 16, 4, 2, 1, groups=2), (1, 8, None, 5)),
}


@pytest.mark.parametrize("case", DYNAMIC)
def test_any_size(case):
    torch.manual_seed(0)
    make, shape = DYNAMIC[case]
    model = make().eval().requires_grad_(False)
    dims = {dim: torch.export.Dim(f"d{dim}", min=2, max=64) for dim, size in enumerate(shape) if size is None}
    x = torch.randn([size or 9 for size in shape])
    executable = pipeline.compile(model, (x,), dynamic_shapes=(dims,), cache=False)
    assert remarks_of(executable, "passed")
    for count in (2, 9, 17):
        y = torch.randn([size or count for size in shape])
        torch.testing.assert_close(executable(y), model(y), rtol=1e-5, atol=1e-5)


def test_threads_change_no_bit():
    torch.manual_seed(0)
    model, x = decoder().eval().requires_grad_(False), torch.randn(2, 64, 8, 8)
    one, two = (pipeline.compile(model, (x,), cache=False, num_threads=count)(x) for count in (1, 2))
    assert torch.equal(one, two)


def test_operands_in_bf16():
    torch.manual_seed(0)
    executable = check(nn.ConvTranspose2d(64, 32, 3, 2, 1), torch.randn(1, 64, 9, 7), 2e-2, precision="bf16")
    assert remarks_of(executable, "passed")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_small_types(dtype):
    torch.manual_seed(0)
    model, x = nn.ConvTranspose2d(16, 32, 4, 2, 1).to(dtype), torch.randn(1, 16, 5, 6).to(dtype)
    executable = check(model, x, 8 * torch.finfo(dtype).eps)
    assert remarks_of(executable, "passed")


def test_no_element_meets_a_tap_that_is_not_there():
    """An infinity makes no NaN where the weight was filled up with zeros."""
    torch.manual_seed(0)
    model, x = nn.ConvTranspose2d(4, 32, 3, 2).eval().requires_grad_(False), torch.randn(1, 4, 5, 5)
    x[0, 0, 2, 2] = float("inf")
    executable = pipeline.compile(model, (x,), cache=False)
    assert remarks_of(executable, "passed")
    assert torch.equal(executable(x).isfinite(), model(x).isfinite())


@pytest.mark.parametrize("rank", LAYERS)
def test_padding_wider_than_the_taps_reach(rank):
    torch.manual_seed(0)
    for kernel, stride, padding, more in ((1, 2, 1, 1), (3, 3, 3, 2), (2, 1, 2, 0)):
        check(LAYERS[rank](4, 9, kernel, stride, padding, more), torch.randn(2, 4, *[5, 6, 4][:rank]))
