"""Biases without a norm: constants merge into them, and none is broadcast to the size of the result."""

import copy

import pytest
import torch
import torch.nn.functional as F
from support import assert_close, elementwise_ops, main_text, remarks
from torch import nn

import pipeline


class Shifted(nn.Module):
    """A layer, then the addition of a constant and of a parameter of channels, then an activation."""

    def __init__(self, layer, channels, rank):
        super().__init__()
        self.layer, self.extra = layer, nn.Parameter(torch.rand(channels, *[1] * rank))

    def forward(self, x):
        return F.relu(self.layer(x) + 0.5 - self.extra)


LAYERS = {
    "conv1d": (lambda bias: nn.Conv1d(4, 5, 3, padding=1, bias=bias), (2, 4, 7), 1),
    "conv2d": (lambda bias: nn.Conv2d(4, 5, 3, stride=2, bias=bias), (2, 4, 7, 6), 2),
    "grouped": (lambda bias: nn.Conv2d(4, 6, 3, groups=2, bias=bias), (1, 4, 7, 6), 2),
    "depthwise": (lambda bias: nn.Conv2d(4, 4, 3, groups=4, bias=bias), (1, 4, 7, 6), 2),
    "conv3d": (lambda bias: nn.Conv3d(2, 3, 2, bias=bias), (1, 2, 4, 3, 3), 3),
    "transposed": (lambda bias: nn.ConvTranspose2d(4, 5, 3, stride=2, bias=bias), (1, 4, 4, 3), 2),
    "linear": (lambda bias: nn.Linear(4, 5, bias=bias), (3, 4), 0),
    "rows": (lambda bias: nn.Linear(4, 5, bias=bias), (2, 3, 4), 0),
    "one channel": (lambda bias: nn.Conv2d(4, 1, 3, bias=bias), (2, 4, 7, 6), 2),
}

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def compiled(model, x):
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), copy.deepcopy(model).double()(x.double()).to(x.dtype), TOLERANCE[x.dtype])
    return executable


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("bias", [False, True])
def test_one_add_is_left(layer, bias):
    torch.manual_seed(0)
    make, shape, rank = LAYERS[layer]
    layer = make(bias)
    channels = layer.out_features if isinstance(layer, nn.Linear) else layer.out_channels
    executable = compiled(Shifted(layer, channels, rank).requires_grad_(False), torch.randn(shape))
    assert [elementwise_ops(executable, op) for op in ("addf", "subf")] == [1, 0]
    assert "linalg.broadcast" not in main_text(executable)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_bias_is_not_broadcast(layer, dtype):
    torch.manual_seed(0)
    make, shape, _ = LAYERS[layer]
    model = nn.Sequential(make(True), nn.ReLU()).requires_grad_(False).to(dtype)
    executable = compiled(model, torch.randn(shape).to(dtype))
    assert "linalg.broadcast" not in main_text(executable)
    assert elementwise_ops(executable, "addf") == 1
    kinds = [kernel.kind for kernel in executable.kernels]
    assert sum(kind in ("conv", "matmul") for kind in kinds) == 1
    rounds = remarks(executable, "separate-bias", "passed")
    assert len(rounds) == (0 if isinstance(model[0], nn.Linear) else 1)


def test_a_result_of_size_0():
    model = nn.Conv2d(4, 5, 3).requires_grad_(False)
    x = torch.randn(0, 4, 6, 5)
    assert pipeline.compile(model, (x,))(x).shape == (0, 5, 4, 3)


def test_a_bias_that_is_data():
    class Given(nn.Module):
        def forward(self, x, weight, bias):
            return F.conv2d(x, weight, bias).relu()

    torch.manual_seed(0)
    arguments = torch.randn(2, 4, 6, 5), torch.randn(5, 4, 3, 3), torch.randn(5)
    executable = pipeline.compile(Given(), arguments)
    assert_close(executable(*arguments), Given()(*arguments), 1e-5)
    assert remarks(executable, "separate-bias", "passed") == []


def test_refresh_takes_a_new_bias():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Conv2d(4, 5, 3), nn.ReLU()).requires_grad_(False), torch.randn(2, 4, 6, 5)
    executable = pipeline.compile(model, (x,))
    model[0].bias.add_(1)
    executable.refresh()
    assert_close(executable(x), model(x), 1e-5)
