"""A net that comes as MLIR becomes as many kernels as the same net from torch, and computes the same."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from random_weights import randomize
from torch import nn
from torch_mlir import fx

import pipeline
from pipeline.runtime.executable import Executable


class Merged(nn.Module):
    """Two convolutions and a norm side by side, which are one convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4))
        self.narrow = nn.Sequential(nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4))
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.wide(x) + self.narrow(x) + self.norm(x))


class Gated(nn.Module):
    """Two linear layers of one input, which are one."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 16), nn.Linear(8, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.left(x)) * torch.tanh(self.right(x))


class Residual(nn.Module):
    """A block with a stride, and a convolution beside it."""

    def __init__(self) -> None:
        super().__init__()
        norm = nn.BatchNorm2d
        first, second = nn.Conv2d(4, 8, 3, 2, 1, bias=False), nn.Conv2d(8, 8, 3, 1, 1, bias=False)
        self.body = nn.Sequential(first, norm(8), nn.ReLU(), second, norm(8))
        self.beside = nn.Sequential(nn.Conv2d(4, 8, 1, 2, bias=False), norm(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.beside(x))


IMAGE, ROW = (2, 4, 9, 8), (5, 8)

NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "convolution": (lambda: nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), IMAGE),
    "depthwise": (lambda: nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.BatchNorm2d(4), nn.ReLU6()), IMAGE),
    "grouped": (lambda: nn.Sequential(nn.Conv2d(4, 8, 3, groups=2), nn.BatchNorm2d(8), nn.SiLU()), IMAGE),
    "one dim": (lambda: nn.Sequential(nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6), nn.ReLU()), (2, 4, 9)),
    "norm in front": (lambda: nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 8, 3), nn.ReLU()), IMAGE),
    "linear": (lambda: nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU()), ROW),
    "linear layers": (lambda: nn.Sequential(nn.Linear(8, 64), nn.Linear(64, 8)), ROW),
    "layer norm": (lambda: nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU()), ROW),
    "merged": (Merged, IMAGE),
    "gated": (Gated, ROW),
    "residual": (Residual, IMAGE),
    "pool": (lambda: nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.MaxPool2d(2)), IMAGE),
}

#: Nets that TOSA can say as they are: it has channels innermost alone, and neither groups nor products of two dims.
SAID_IN_TOSA = ("linear", "layer norm", "gated")


def calls(executable: Executable) -> int:
    """How many calls of kernels @main has."""
    main = executable.ir("kernels").split("func.func @main", 1)[1].split("func.func ", 1)[0]
    return len(re.findall(r" call @", main))


def check(name: str, kinds: tuple[str, ...]) -> None:
    make, shape = NETS[name]
    torch.manual_seed(0)
    net = randomize(make().eval()).requires_grad_(False)
    x = torch.randn(shape)
    wanted, expected = calls(pipeline.compile(net, (x,))), net.double()(x.double()).numpy()
    net.float()
    for kind in kinds:
        text: Any = fx.export_and_import(net, x, output_type=kind)
        compiled = pipeline.compile(text.operation.get_asm())
        np.testing.assert_allclose(compiled(x.numpy()), expected, rtol=1e-4, atol=1e-5, err_msg=kind)
        assert calls(compiled) == wanted, kind


@pytest.mark.parametrize("name", NETS)
def test_a_net_in_mlir_has_the_kernels_of_torch(name: str) -> None:
    check(name, ("linalg-on-tensors", "stablehlo"))


@pytest.mark.parametrize("name", SAID_IN_TOSA)
def test_so_has_one_in_tosa(name: str) -> None:
    check(name, ("tosa",))
