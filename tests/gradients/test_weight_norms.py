"""Weights that are a direction of a length, of every layer and dim, and the norms that they are made of."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

aten = torch.ops.aten

LAYERS = {
    "linear": (lambda: nn.Linear(6, 8), (3, 6)),
    "conv": (lambda: nn.Conv1d(3, 4, 5), (2, 3, 9)),
    "transposed conv": (lambda: nn.ConvTranspose2d(3, 4, 3), (2, 3, 5, 6)),
}

#: How far off gradients may be, as a part of their largest element.
BOUNDS = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 3e-2}

NORMS = {
    "of all": lambda x, _: aten.norm.Scalar(x, 2),
    "along a dim": lambda x, _: aten.norm.ScalarOpt_dim(x, 3, [1]),
    "along none": lambda x, _: aten.norm.ScalarOpt_dim(x, None, [], True),
    "in a dtype": lambda x, wide: aten.norm.ScalarOpt_dtype(x, 1, dtype=wide),
    "along a dim in a dtype": lambda x, wide: aten.norm.ScalarOpt_dim_dtype(x, 0.5, [0], True, dtype=wide),
}


class Layers(nn.Module):
    """A layer with its weight's norm along each dim, and along none; each for an argument of its own."""

    def __init__(self, layer):
        super().__init__()
        self.layers = nn.ModuleList(weight_norm(layer(), dim=dim) for dim in (0, 1, -1, None))

    def forward(self, *xs):
        return sum(layer(x).square().sum() for layer, x in zip(self.layers, xs, strict=True))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize(("layer", "shape"), LAYERS.values(), ids=LAYERS)
def test_gradients_are_eagers(layer, shape, dtype, dynamic):
    mine = Layers(layer).to(dtype)
    its, xs = copy.deepcopy(mine), torch.randn(4, *shape).to(dtype)
    torch.compile(mine, backend="pipeline", dynamic=dynamic, options={"fallback": "error"})(*xs).backward()
    its(*xs).backward()
    for (name, one), other in zip(mine.named_parameters(), its.parameters(), strict=True):
        assert float((one.grad - other.grad).abs().max() / other.grad.abs().max()) < BOUNDS[dtype], name


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("function", NORMS.values(), ids=NORMS)
def test_norms_of_every_form(function, dtype):
    x, wide = torch.randn(5, 7).to(dtype), torch.float64
    with torch.no_grad():
        code = torch.compile(lambda x: function(x, wide), backend="pipeline", options={"fallback": "error"})
        torch.testing.assert_close(code(x), function(x, wide))
