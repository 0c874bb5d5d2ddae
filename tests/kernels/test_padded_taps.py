"""Convolutions whose taps lie so far apart that some read padding alone: those are not multiplied."""

from __future__ import annotations

import pytest
import torch
from dynamo_state import fresh_dynamo
from torch import nn
from torch._dynamo.utils import counters

import pipeline

__all__ = ["fresh_dynamo"]

#: Layers and the sizes of their images. Some taps read data in a margin alone, or nowhere; bands differ by axis.
FORMS = {
    "a margin": (lambda: nn.Conv2d(16, 24, 3, padding=12, dilation=12), (20, 28)),
    "the middle": (lambda: nn.Conv2d(16, 24, 3, padding=24, dilation=24), (28, 28)),
    "nowhere": (lambda: nn.Conv2d(16, 24, 3, padding=36, dilation=36), (28, 28)),
    "exactly": (lambda: nn.Conv2d(16, 24, 3, padding=28, dilation=28), (28, 28)),
    "one axis": (lambda: nn.Conv2d(32, 24, 3, padding=(1, 18), dilation=(1, 18)), (30, 21)),
    "five taps": (lambda: nn.Conv2d(8, 16, 5, padding=20, dilation=10), (19, 25)),
    "steps": (lambda: nn.Conv2d(24, 24, 3, padding=20, dilation=20, stride=2), (33, 30)),
    "not as many": (lambda: nn.Conv2d(16, 24, 3, padding=(15, 9), dilation=16), (24, 40)),
    "without bias": (lambda: nn.Conv2d(16, 24, 3, padding=18, dilation=18, bias=False), (21, 22)),
    "lines": (lambda: nn.Conv1d(64, 64, 3, padding=128, dilation=128), (150,)),
    "a line's middle": (lambda: nn.Conv1d(64, 64, 3, padding=256, dilation=256), (250,)),
    "transposed": (lambda: nn.ConvTranspose2d(16, 24, 3, padding=12, dilation=12), (20, 28)),
    "transposed, nowhere": (lambda: nn.ConvTranspose2d(24, 32, 3, padding=30, dilation=30), (28, 20)),
    "volumes": (lambda: nn.Conv3d(8, 16, 3, padding=(1, 7, 7), dilation=(1, 7, 7)), (4, 11, 12)),
}


def drawn(name, dtype=torch.float32, batch=2):
    torch.manual_seed(0)
    layer, sizes = FORMS[name]
    layer = layer().to(dtype).eval()
    return layer, torch.randn(batch, layer.in_channels, *sizes).to(dtype)


def products_left_out(executable):
    return [remark for remark in executable.remarks if remark.pass_name == "drop-padded-taps"]


def check(model, x, dtype=torch.float32):
    executable = pipeline.compile(model, (x,))
    with torch.no_grad():
        result, exact = executable(x), model.double()(x.double())
    close = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}[dtype]
    assert result.dtype == dtype
    torch.testing.assert_close(result.double(), exact, rtol=close, atol=close)
    return executable


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    assert len(products_left_out(check(*drawn(name)))) == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["a margin", "the middle", "nowhere", "lines"])
def test_dtypes(name, dtype):
    check(*drawn(name, dtype), dtype)


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_batches(batch):
    check(*drawn("the middle", batch=batch))


def test_what_follows_and_what_is_before():
    """Norms are folded, activations and residuals follow; the layer in front gives what is read in parts."""
    layer, x = drawn("the middle")
    norm = nn.BatchNorm2d(24)
    nn.init.normal_(norm.running_mean)
    model = nn.Sequential(nn.Conv2d(16, 16, 1), nn.ReLU(), layer, norm, nn.ReLU(), nn.Conv2d(24, 8, 1)).eval()
    assert products_left_out(check(model, x))


def test_pyramids():
    """Several of one image beside each other, as DeepLab has them, with channels last."""

    class Pyramid(nn.Module):
        def __init__(self):
            super().__init__()
            self.branches = nn.ModuleList(nn.Conv2d(32, 16, 3, padding=rate, dilation=rate) for rate in (6, 12, 18, 30))
            self.last = nn.Conv2d(64, 16, 1)

        def forward(self, x):
            return self.last(torch.cat([branch(x).relu() for branch in self.branches], 1))

    x = torch.randn(1, 32, 24, 24).contiguous(memory_format=torch.channels_last)
    assert len(products_left_out(check(Pyramid().eval(), x))) == 3


@pytest.mark.parametrize("name", ["a margin", "the middle", "nowhere"])
def test_gradients(name):
    layer, x = drawn(name, torch.float64)
    results = []
    for one in (torch.compile(layer, backend="pipeline", options={"fallback": "error"}), layer):
        layer.zero_grad()
        mine = x.clone().requires_grad_()
        one(mine).sin().sum().backward()
        results.append([mine.grad, *(weight.grad for weight in layer.parameters())])
    torch.testing.assert_close(*results, rtol=1e-11, atol=1e-11)


def test_gradients_of_batches_of_any_size():
    """Sizes of images are known, that of the batch is not; one compilation does for all of them."""
    layer, x = drawn("the middle", torch.float64)
    compiled = torch.compile(layer, backend="pipeline", options={"fallback": "error"})
    for batch in (2, 5, 3):
        results = []
        for one in (compiled, layer):
            layer.zero_grad()
            mine = x[:1].repeat(batch, 1, 1, 1).requires_grad_()
            torch._dynamo.mark_dynamic(mine, 0)
            one(mine).sin().sum().backward()
            results.append([mine.grad, *(weight.grad for weight in layer.parameters())])
        torch.testing.assert_close(*results, rtol=1e-11, atol=1e-11)
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(16, 24, 3, padding=2, dilation=2),
        nn.Conv2d(16, 24, 7, padding=3),
        nn.Conv2d(16, 24, 3, padding=24, dilation=24, padding_mode="reflect"),
        nn.Conv2d(2, 3, 3, padding=24, dilation=24),
    ],
    ids=["too few", "too many bands", "no zeros", "too small"],
)
def test_others_stay_whole(layer):
    x = torch.randn(1, layer.in_channels, 28, 28)
    assert not products_left_out(check(layer.eval(), x))


@pytest.mark.parametrize(
    ("channels", "size", "dilation", "batch", "parts"),
    [
        (384, 1, 1, 1, "computes 11 % of its products: "),
        (256, 3, 1, 1, ""),
        (256, 4, 1, 16, ""),
        (64, 4, 1, 64, "in 9 parts"),
        (96, 2, 1, 64, "in 4 parts"),
        (64, 7, 4, 1, "in 9 parts"),
        (256, 7, 3, 1, ""),
        (64, 7, 3, 8, "in 9 parts"),
    ],
)
def test_small_images_are_cut_where_their_batch_is_large(channels, size, dilation, batch, parts):
    """Each part reads weights of its own. An image of one element has one part, and reads one tap."""
    torch.manual_seed(0)
    layer = nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation).eval()
    left_out = products_left_out(check(layer, torch.randn(batch, channels, size, size)))
    assert len(left_out) == bool(parts)
    assert all(parts in remark.reason for remark in left_out)


def test_unknown_sizes_stay_whole():
    layer, x = drawn("the middle")
    height = torch.export.Dim("height", min=2, max=100)
    executable = pipeline.compile(layer, (x,), dynamic_shapes=({2: height},))
    assert not products_left_out(executable)
    for size in (28, 61):
        given = torch.randn(2, 16, size, 28)
        torch.testing.assert_close(executable(given), layer(given), rtol=1e-4, atol=1e-5)
