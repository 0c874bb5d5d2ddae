"""Kernels of @prepare are shared by weights of all sizes: right for each, and when weights move."""

from __future__ import annotations

import torch
from torch import nn

import pipeline


def norm_layers(*channels: int) -> nn.Sequential:
    """1x1, 3x3 and depthwise convolutions with norms behind them, for each pair of neighbours in `channels`."""
    layers: list[nn.Module] = []
    for first, second in zip(channels, channels[1:], strict=False):
        layers += [nn.Conv2d(first, second, 1), nn.BatchNorm2d(second), nn.ReLU()]
        layers += [nn.Conv2d(second, second, 3, padding=1, groups=second), nn.BatchNorm2d(second)]
        layers += [nn.Conv2d(second, second, 3, padding=1), nn.BatchNorm2d(second)]
    model = nn.Sequential(*layers).eval()
    for layer in model:
        if isinstance(layer, nn.BatchNorm2d):
            for tensor in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
                nn.init.uniform_(tensor, 0.5, 1.5)
    return model.requires_grad_(False)


def error(executable: pipeline.Executable, model: nn.Module, x: torch.Tensor) -> float:
    expected = model.double()(x.double())
    model.float()
    return float((executable(x) - expected).abs().max() / expected.abs().max())


def test_sizes_of_layers() -> None:
    """Of more channels than a panel has, of odd numbers of them; those of one channel have kernels of their own."""
    torch.manual_seed(0)
    for channels, shared in {(3, 16, 24, 40): 3, (32, 64, 96, 33): 3, (1, 2, 3, 5): 3, (7, 1, 9): 0}.items():
        model, x = norm_layers(*channels), torch.randn(1, channels[0], 7, 7)
        executable = pipeline.compile(model, (x,))
        remarks = [remark for remark in executable.remarks if remark.pass_name == "share-prepare-kernels"]
        assert len(remarks) == shared, (channels, remarks)
        assert error(executable, model, x) < 1e-5, channels


def test_weights_that_move() -> None:
    model, x = norm_layers(3, 16, 24), torch.randn(1, 3, 7, 7)
    executable = pipeline.compile(model, (x,))
    for parameter in model.parameters():
        parameter.mul_(1.25)
    executable.refresh()
    assert error(executable, model, x) < 1e-5


def test_nothing_is_copied_for_them() -> None:
    """Results go where the caller says, as with kernels of one size each: @prepare has no loops of its own."""
    executable = pipeline.compile(norm_layers(32, 64, 96), (torch.randn(1, 32, 7, 7),))
    text = executable.ir("llvm")
    assert "@prepare_chunk" not in text
    body = text[text.index("llvm.func @prepare(") :].partition("llvm.return")[0]
    assert "llvm.store" not in body
