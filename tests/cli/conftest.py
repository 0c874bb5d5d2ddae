"""A folder with models for the drivers, and artifacts of some."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.tools import compile as compile_driver

NETS = """
import torch
from torch import nn
from helper import SIZE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(SIZE, 3)

    def forward(self, x, scale=None):
        y = torch.relu(self.linear(x))
        return y if scale is None else {"y": y * scale, "n": 3, "x": x + 1}


class Branches(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


def model():
    return Net().eval(), (torch.ones(2, SIZE),)


def scaled():
    return Net().eval(), (torch.ones(2, SIZE),), {"scale": torch.ones(3)}


def dynamic():
    return {"model": Net(), "args": (torch.ones(2, SIZE),), "dynamic_shapes": ({0: torch.export.Dim("n")},)}


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        return x * self.calls


def counting():
    return Counting(), (torch.ones(3),)


def half():
    return nn.ReLU(), (torch.ones(3, dtype=torch.bfloat16),)


def branches():
    return Branches(), (torch.ones(2),)


def other_weights():
    net, args = model()
    net.linear.bias.data.add_(2)
    return net, args


def only_the_module():
    return Net()


def args_no_tuple():
    return Net(), torch.ones(2, SIZE)


def four():
    return 1, 2, 3, 4


def misspelled():
    return {"model": Net(), "arg": ()}


def fails():
    return undefined


NUMBER = 3
"""

MLIR = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = math.exp %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "nets.py").write_text(NETS)
    (folder / "helper.py").write_text("SIZE = 4\n")
    (folder / "exp.mlir").write_text(MLIR)
    np.save(folder / "x.npy", np.ones((2, 4), np.float32))
    np.save(folder / "scale.npy", np.full(3, 2, np.float32))
    return folder


@pytest.fixture(scope="module")
def nets(folder):
    return str(folder / "nets.py")


@pytest.fixture(scope="module")
def artifact(folder, nets):
    path = str(folder / "net.pipeline")
    assert compile_driver.main([nets, "-o", path]) == 0
    return path


@pytest.fixture(scope="module")
def scaled(folder, nets):
    path = str(folder / "scaled.pipeline")
    assert compile_driver.main([f"{nets}:scaled", "-o", path]) == 0
    return path
