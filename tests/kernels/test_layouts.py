"""Convolutions with channels last, by blocks and by Winograd's algorithm, against float64; layouts are forced."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from torch import nn

import pipeline
from pipeline.targets.cpu.target import CpuTarget


class Net(nn.Module):
    """A convolution of a convolution's result, and what comes behind it."""

    def __init__(self, channels, results, tail=lambda x: x, **window):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 1)
        self.second = nn.Conv2d(channels, results, **window)
        self.tail = tail

    def forward(self, x):
        return self.tail(self.second(torch.relu(self.first(x))))


@pytest.fixture
def forced(monkeypatch):
    """Channels last and Winograd's algorithm whatever they cost."""
    layouts = "canonicalize, cse, propagate-layouts{{always=true}}, winograd-weights{{always=true results={}}}"
    return lambda results=2: monkeypatch.setattr(CpuTarget, "layouts", layouts.format(results))


def check(net, shape, dtype=torch.float32, factor=8, **options):
    """Compares with float64: the error is at most some times that of eager."""
    torch.manual_seed(0)
    net = net.eval().to(dtype)
    x = torch.randn(shape, dtype=dtype)
    with torch.no_grad():
        executable = pipeline.compile(net, (x,), cache=False, **options)
        result, eager = executable(x), net(x)
        exact = net.double()(x.double())
    assert result.shape == eager.shape
    assert result.dtype == dtype
    most = factor * ((eager.double() - exact).abs().max() + torch.finfo(dtype).eps)
    assert (result.double() - exact).abs().max() <= most
    return [str(remark) for remark in executable.remarks]


WINDOWS = {
    "plain": {"kernel_size": 3, "padding": 1},
    "strided": {"kernel_size": 3, "stride": 2, "padding": 1},
    "uneven": {"kernel_size": (3, 2), "stride": (1, 2), "padding": (0, 1)},
    "dilated": {"kernel_size": 3, "dilation": 2, "padding": 2},
    "point": {"kernel_size": 1},
    "large": {"kernel_size": 7, "stride": 2, "padding": 3},
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("channels", "results"), [(1, 1), (3, 32), (5, 24), (16, 40), (32, 64)])
def test_convolutions_with_channels_last(forced, window, channels, results):
    forced()
    remarks = check(Net(channels, results, **WINDOWS[window]), (2, channels, 9, 11))
    assert any("channels last" in remark for remark in remarks)


def test_float64(forced):
    forced()
    check(Net(16, 64, **WINDOWS["plain"]), (1, 16, 6, 7), dtype=torch.float64)


@pytest.mark.parametrize(
    "tail",
    [
        lambda x: F.max_pool2d(x, 3, 2, padding=1),
        lambda x: F.avg_pool2d(x, 2, 1, padding=1),
        lambda x: torch.cat([x, x + 1], 1),
        lambda x: x * torch.sigmoid(x.mean((2, 3), keepdim=True)),
        lambda x: x.flatten(1).softmax(1),
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: (x, x.mean((2, 3))),
        lambda x: F.pad(x, (1, 0, 2, 1)),
    ],
    ids=["max", "average", "concat", "squeeze", "flatten", "nearest", "twice", "pad"],
)
def test_what_comes_behind(forced, tail):
    forced()
    net, x = Net(16, 32, tail, kernel_size=3, padding=1).eval(), torch.randn(1, 16, 7, 6)
    with torch.no_grad():
        result = pipeline.compile(net, (x,), cache=False)(x)
        torch.testing.assert_close(result, net(x), rtol=2e-5, atol=2e-5)


def test_depthwise(forced):
    forced()
    for window in ("plain", "strided", "uneven", "dilated"):
        check(Net(24, 24, groups=24, **WINDOWS[window]), (2, 24, 8, 9))


def test_any_batch(forced):
    forced()
    net, x = Net(16, 32, kernel_size=3, padding=1).eval(), torch.randn(2, 16, 7, 6)
    batch = torch.export.Dim("batch", min=1, max=64)
    executable = pipeline.compile(net, (x,), dynamic_shapes=({0: batch},), cache=False)
    for count in (1, 2, 5):
        y = torch.randn(count, 16, 7, 6)
        with torch.no_grad():
            torch.testing.assert_close(executable(y), net(y), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 5), (7, 7), (8, 13)])
def test_winograd(forced, size):
    forced()
    remarks = check(Net(32, 64, kernel_size=3, padding=1), (2, 32, *size))
    assert any("Winograd's algorithm, 2 x 2" in remark for remark in remarks)


@pytest.mark.parametrize("of_input", [False, True])
def test_winograd_with_an_epilogue_and_threads(forced, of_input):
    """The epilogue reads data with channels last, or the argument, whose channels are first; the result's are, too."""
    forced()

    class Residual(Net):
        def forward(self, x):
            y = self.first(x)
            return torch.relu(self.second(y) + (x if of_input else y))

    remarks = check(Residual(64, 64, kernel_size=3, padding=1), (1, 64, 21, 30), num_threads=2)
    assert any("2 results a tile with 1 epilogues" in remark for remark in remarks)


def test_winograd_of_larger_tiles_is_less_exact(forced):
    forced(4)
    remarks = check(Net(64, 32, kernel_size=3, padding=1), (1, 64, 9, 14), factor=50)
    assert any("Winograd's algorithm, 4 x 4" in remark for remark in remarks)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64, torch.int8, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 16, 16, 16), (2, 3, 5, 7), (1, 33, 17, 1), (1, 0, 2, 3), (3, 40, 4, 20)])
def test_transposes(dtype, shape):
    def function(x):
        return x.permute(0, 2, 3, 1).contiguous(), (x.permute(0, 3, 1, 2) + x.permute(0, 3, 1, 2)).contiguous()

    x = (torch.randn(shape) * 10).to(dtype)
    for result, expected in zip(pipeline.compile(Function(function), (x,))(x), function(x), strict=True):
        assert torch.equal(result, expected)


def test_by_default_a_network_has_its_channels_last_and_a_small_sum_has_not():
    net = Net(64, 64, lambda x: x.mean((2, 3)), kernel_size=3, padding=1)
    remarks = check(net, (1, 64, 28, 28))
    assert any("channels last" in remark for remark in remarks)
    assert any("Winograd's algorithm, 2 x 2" in remark for remark in remarks)
    small = nn.Conv2d(1, 8, 1)
    assert any("channels stay first" in remark for remark in check(small, (1, 1, 64, 64)))


@pytest.mark.parametrize("results", [1, 3, 8])
def test_few_results_stay_first_behind_channels_that_are_last(results):
    """Their vectors run along rows; what they read is converted."""
    remarks = check(Net(64, results, kernel_size=3, padding=1), (1, 64, 40, 40))
    assert any("passed: channels last" in remark for remark in remarks)
    assert any("few lanes of vectors being channels" in remark for remark in remarks)


def test_the_algorithm_of_3x3_convolutions_can_be_chosen():
    net = Net(64, 64, kernel_size=3, padding=1)
    remarks = check(net, (1, 64, 28, 28), winograd=4, factor=50)
    assert any("Winograd's algorithm, 4 x 4" in remark for remark in remarks)
    remarks = check(net, (1, 64, 28, 28), winograd=0)
    assert any("channels last" in remark for remark in remarks)
    assert not any("Winograd" in remark for remark in remarks)


def test_direct_weights_that_nothing_reads_take_no_memory(tmp_path):
    def prepared(executable):
        return executable.memory.prepared

    torch.manual_seed(0)
    net = nn.Conv2d(64, 64, 3, padding=1, bias=False).eval().requires_grad_(False)
    x = torch.randn(1, 64, 28, 28)
    transformed = pipeline.compile(net, (x,), cache=False)
    direct = pipeline.compile(net, (x,), cache=False, winograd=0)
    both = pipeline.compile(net, (x,), cache=False, disable=("tile-and-vectorize",))
    assert prepared(direct) == net.weight.nbytes
    assert prepared(transformed) == net.weight.nbytes * 16 // 9
    assert prepared(both) >= prepared(direct)
    transformed.save(tmp_path / "model.pipeline")
    loaded = pipeline.load(tmp_path / "model.pipeline")
    assert prepared(loaded) == prepared(transformed)
    net.weight.mul_(2)
    transformed.refresh()
    for executable, factor in ((transformed, 2), (loaded, 1), (both, 2)):
        result = torch.as_tensor(executable(x if executable is not loaded else x.numpy()))
        torch.testing.assert_close(result, net(x) * factor / 2, rtol=1e-4, atol=1e-4)


def test_passes_can_be_left_out():
    net = Net(64, 64, lambda x: x.mean((2, 3)), kernel_size=3, padding=1)
    remarks = check(net, (1, 64, 28, 28), disable=("winograd-weights",))
    assert any("channels last" in remark for remark in remarks)
    assert not any("Winograd" in remark for remark in remarks)
    remarks = check(net, (1, 64, 28, 28), disable=("propagate-layouts",))
    assert not any("channels" in remark for remark in remarks)
