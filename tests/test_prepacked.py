"""Modules whose weights torch has packed for itself: right, or one clear error."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.utils import mkldnn

import pipeline

MODELS = {
    "conv": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), (2, 3, 8, 8)),
    "linear": (lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), (3, 8)),
}


class Packed(nn.Module):
    """A model of mkldnn's tensors, between ordinary ones."""

    def __init__(self, model):
        super().__init__()
        self.model = mkldnn.to_mkldnn(copy.deepcopy(model))

    def forward(self, x):
        return self.model(x.to_mkldnn()).to_dense()


@pytest.fixture(params=MODELS)
def case(request):
    torch.manual_seed(0)
    make, shape = MODELS[request.param]
    return make().eval(), torch.randn(shape)


def test_to_mkldnn(case):
    model, x = case
    with pytest.raises(pipeline.CaptureError, match="could not capture Packed"):
        pipeline.compile(Packed(model).eval(), (x,))


@pytest.mark.parametrize("way", ["script", "trace"])
def test_optimize_for_inference(case, way):
    model, x = case
    captured = torch.jit.script(model) if way == "script" else torch.jit.trace(model, x)
    packed = torch.jit.optimize_for_inference(torch.jit.freeze(captured))
    with torch.no_grad():
        expected = model(x)
    torch.testing.assert_close(pipeline.compile(packed, (x,))(x), expected)
