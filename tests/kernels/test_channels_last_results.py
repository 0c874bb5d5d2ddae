"""Convolutions of groups, lines and volumes that compute their channels innermost, against eager in float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline

CONVOLUTIONS = {
    "groups": (nn.Conv2d(48, 120, 3, padding=1, groups=3), (2, 48, 5, 6)),
    "groups of strides": (nn.Conv2d(34, 70, (3, 1), stride=(2, 1), groups=2, bias=False), (1, 34, 9, 7)),
    "groups far apart": (nn.Conv2d(64, 96, 3, padding=2, dilation=2, groups=4), (3, 64, 7, 7)),
    "line": (nn.Conv1d(40, 99, 5, padding=2), (2, 40, 19)),
    "strided line": (nn.Conv1d(33, 64, 4, stride=3), (1, 33, 50)),
    "volume": (nn.Conv3d(12, 33, 3, padding=(1, 0, 2)), (1, 12, 4, 6, 5)),
    "strided volume": (nn.Conv3d(9, 64, (1, 3, 3), stride=2, padding=1), (2, 9, 3, 9, 8)),
}


class Residual(nn.Module):
    """The result is read by two ops, one of which wants it as it was."""

    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x):
        y = self.conv(x)
        return torch.relu(y) + y.flatten(1).cumsum(1).view_as(y)


def computes_channels_last(exe) -> bool:
    """Whether a convolution does."""
    return any(one.pass_name == "compute-channels-last" and one.kind == "passed" for one in exe.remarks)


def check(model, x, **options):
    model = model.eval().requires_grad_(False)
    exe = pipeline.compile(model, (x,), **options)
    exact = model.double()(x.double())
    model.float()
    torch.testing.assert_close(exe(x).double(), exact, atol=2e-5, rtol=1e-5)
    return exe


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("conv", "shape"), CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_with_a_function_behind(conv, shape, threads):
    torch.manual_seed(0)
    assert computes_channels_last(check(nn.Sequential(conv, nn.SiLU()), torch.randn(shape), num_threads=threads))


@pytest.mark.parametrize("form", ["groups", "line", "volume"])
def test_results_that_two_read(form):
    conv, shape = CONVOLUTIONS[form]
    torch.manual_seed(0)
    assert computes_channels_last(check(Residual(conv), torch.randn(shape)))


def test_one_after_the_other_and_disabled():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(8, 64, 3), nn.ReLU(), nn.Conv1d(64, 64, 3), nn.Conv1d(64, 32, 1)).eval()
    x = torch.randn(2, 8, 17)
    assert computes_channels_last(check(model, x))
    assert not computes_channels_last(check(model, x, disable=["compute-channels-last"]))


@pytest.mark.parametrize(
    ("conv", "shape"),
    [(nn.Conv1d(8, 8, 3), (1, 8, 512)), (nn.Conv2d(8, 16, 3, groups=4), (1, 8, 34, 34))],
    ids=["long rows", "few channels of a group"],
)
def test_must_not_fire(conv, shape):
    exe = check(conv, torch.randn(shape))
    assert not computes_channels_last(exe)
    assert any("channels stay first" in one.reason for one in exe.remarks if one.pass_name == "compute-channels-last")
