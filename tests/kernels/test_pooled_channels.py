"""Means over the pixels of images with channels last run along the channels, whether or not dims are kept."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline


class Gate(nn.Module):
    """A convolution whose result is scaled by what becomes of the mean of its pixels."""

    def __init__(self, channels: int, keep: bool):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3, padding=1)
        self.gate = nn.Linear(channels, channels)
        self.keep = keep

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x).relu()
        mean = y.mean((2, 3), keepdim=self.keep)
        scale = self.gate(mean.flatten(1)).sigmoid()
        return y * scale[:, :, None, None] + y.amax((2, 3), keepdim=True)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("size", [(1, 64, 14), (2, 33, 5), (3, 48, 1)], ids=str)
def test_squeeze_and_excite(size: tuple[int, int, int], keep: bool) -> None:
    batch, channels, side = size
    model, x = Gate(channels, keep).eval(), torch.randn(batch, 3, side, side)
    executable = pipeline.compile(model, (x,), num_threads=1)
    torch.testing.assert_close(executable(x), model(x), rtol=1e-5, atol=1e-5)


def test_the_sums_run_in_vectors() -> None:
    model, x = nn.Sequential(nn.Conv2d(8, 64, 3, padding=1), nn.AdaptiveAvgPool2d(1)).eval(), torch.randn(1, 8, 28, 28)
    executable = pipeline.compile(model, (x,), num_threads=1)
    assert "channels last" in " ".join(remark.reason for remark in executable.remarks)
    missed = [r.reason for r in executable.remarks if (r.pass_name, r.kind) == ("tile-and-vectorize", "missed")]
    assert not [reason for reason in missed if "no loop runs along the innermost dimension" in reason]
    torch.testing.assert_close(executable(x), model(x), rtol=1e-5, atol=1e-5)


def test_symbolic_sizes() -> None:
    model, x = Gate(32, True).eval(), torch.randn(2, 3, 9, 9)
    batch, side = torch.export.Dim("batch", max=8), torch.export.Dim("side", max=32)
    executable = pipeline.compile(model, (x,), dynamic_shapes=({0: batch, 2: side, 3: side},))
    for shape in ((1, 3, 1, 1), (3, 3, 17, 17), (2, 3, 9, 9)):
        x = torch.randn(shape)
        torch.testing.assert_close(executable(x), model(x), rtol=1e-5, atol=1e-5)
