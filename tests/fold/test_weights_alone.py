"""What weights are computed from: weight norm and the like run once, in @prepare, and again after a refresh."""

import warnings

import pytest
import torch
from support import assert_close, elementwise_ops, main_text, randomize, remarks
from torch import nn
from torch.nn.utils import parametrizations

import pipeline

LAYERS = {
    "conv1d in groups": (lambda: nn.Conv1d(4, 4, 3, groups=2), (2, 4, 6)),
    "conv2d": (lambda: nn.Conv2d(4, 5, 3), (2, 4, 6, 5)),
    "transposed": (lambda: nn.ConvTranspose1d(4, 5, 3), (2, 4, 6)),
    "linear": (lambda: nn.Linear(4, 5), (3, 4)),
}


def old_weight_norm(layer, dim):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return nn.utils.weight_norm(layer, dim=dim)


def check(model, x):
    """Results as in eager, before and after a refresh, with neither norms nor products of weights in @main."""
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-5)
    assert [elementwise_ops(executable, op) for op in ("divf", "mulf")] == [0, 0]
    assert "math." not in main_text(executable)
    assert remarks(executable, "hoist-to-prepare", "missed") == []
    for parameter in model.parameters():
        parameter.data.mul_(-1.5).add_(0.1)
    executable.refresh()
    assert_close(executable(x), model(x), 1e-5)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("norm", [parametrizations.weight_norm, old_weight_norm])
def test_weight_norm(layer, dim, norm):
    torch.manual_seed(0)
    make, shape = LAYERS[layer]
    check(nn.Sequential(norm(make(), dim=dim), nn.ReLU()).eval().requires_grad_(False), torch.randn(shape))


def test_weight_norm_and_batch_norm():
    torch.manual_seed(0)
    layers = parametrizations.weight_norm(nn.Conv2d(4, 5, 3)), nn.BatchNorm2d(5)
    check(randomize(nn.Sequential(*layers)), torch.randn(2, 4, 6, 5))


def test_spectral_norm():
    torch.manual_seed(0)
    model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 5))).eval().requires_grad_(False)
    x = torch.randn(3, 4)
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-5)
    assert "arith.divf" not in main_text(executable)


def test_weight_standardization():
    class Standardized(nn.Conv2d):
        def forward(self, x):
            mean, var = self.weight.mean((1, 2, 3), keepdim=True), self.weight.var((1, 2, 3), keepdim=True)
            return self._conv_forward(x, (self.weight - mean) * (var + 1e-6).rsqrt(), self.bias)

    torch.manual_seed(0)
    check(Standardized(4, 5, 3).requires_grad_(False), torch.randn(2, 4, 6, 5))
