"""Random chains of convolutions, norms, factors and reshapes give what eager gives, whatever is folded."""

import random

import pytest
import torch
import torch.nn.functional as F
from support import assert_close, randomize
from torch import nn

import pipeline


class Step(nn.Module):
    """A random op on an image [n, c, h, w] that keeps its shape, up to c."""

    def __init__(self, channels, size, choice):
        super().__init__()
        self.kind = choice.choice(
            ["conv", "conv", "depthwise", "grouped", "norm", "norm", "norm", "channels", "width", "scalar", "relu"]
            + ["transpose", "split", "concat", "reuse", "pad", "crop", "transposed conv", "divide", "batch"]
        )
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, channels, 1, bias=choice.random() < 0.5)
        self.other = nn.Conv2d(channels, channels, 3, padding=1)
        if self.kind in ("depthwise", "grouped"):
            groups = channels if self.kind == "depthwise" else 2
            self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=groups)
        if self.kind == "transposed conv":
            self.conv = nn.ConvTranspose2d(channels, channels, 3, padding=1)
        shape = (size,) if self.kind == "width" else (channels, 1, 1)
        self.factor = nn.Parameter(torch.rand(shape) + 0.5)

    def forward(self, x):
        n, c, h, w = x.shape
        match self.kind:
            case "norm":
                return self.norm(x)
            case "channels":
                return x * self.factor + self.factor
            case "width":
                return x * self.factor - 0.25
            case "divide":
                return x / self.factor
            case "scalar":
                return (x - 0.5) * 1.5
            case "relu":
                return F.relu(x)
            case "transpose":
                return self.norm(x.transpose(1, 2).contiguous().transpose(1, 2))
            case "split":
                return (x.reshape(n, 2, c // 2, h * w) * self.factor.view(2, c // 2, 1)).view(n, c, h, w)
            case "concat":
                return self.norm(torch.cat([self.conv(x)[:, : c // 2], self.other(x)[:, c // 2 :]], 1))
            case "reuse":
                y = self.conv(x)
                return self.norm(y) + y
            case "pad":
                return F.pad(x, (1, 1, 1, 1))[:, :, 1:-1, 1:-1] * self.factor
            case "crop":
                return F.pad(self.norm(self.other(x)[:, :, 1:, :]), (0, 0, 1, 0))
            case "batch":
                return x * torch.linspace(0.5, 1.5, n).view(n, 1, 1, 1)
        return self.conv(x)


@pytest.mark.parametrize("seed", [4, 55, 57, *range(10, 20)])
def test_random_chain(seed):
    torch.manual_seed(seed)
    choice = random.Random(seed)
    model = nn.Sequential(*[Step(4, 4, choice) for _ in range(8)])
    model, x = randomize(model, seed), torch.randn(choice.choice([1, 2]), 4, 4, 4)
    assert_close(pipeline.compile(model, (x,))(x), model(x), 1e-4)
