"""How many bytes a step keeps and computes in: no more than a layer's for any depth, and what eager keeps."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline

WIDTH = 96


def layers(depth):
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(depth)))


def convolutions(depth):
    blocks = ((nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()) for _ in range(depth))
    return nn.Sequential(*(nn.Sequential(*block) for block in blocks))


def compiled_step(model, x):
    """Forward and backward of a sum, after a step."""
    call = torch.compile(model.train(), backend="pipeline", options={"num_threads": 1})
    call(x).sum().backward()
    return pipeline.executables(call)


def kept_by_eager(model, x):
    """The bytes that eager keeps for backward, beside weights and the input."""
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(x)
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), x)}
    return sum(size for place, size in kept.items() if place not in own)


@pytest.mark.parametrize(
    ("make", "x"), [(layers, torch.randn(64, WIDTH)), (convolutions, torch.randn(2, 32, 12, 12))], ids=["mlp", "convs"]
)
def test_workspaces_do_not_grow_with_depth(make, x):
    few, many = compiled_step(make(3), x), compiled_step(make(9), x)
    for short, deep in zip(few, many, strict=True):
        assert deep.memory.workspace <= 1.2 * short.memory.workspace + 2 * x.nbytes
    model = make(9)
    assert many[0].memory.results <= 1.1 * kept_by_eager(model, x) + 2 * x.nbytes


def test_gradients_are_computed_where_they_go():
    """Products whose operands are packed write their panels' places in the gradient itself."""
    x = torch.randn(64, WIDTH)
    _, backward = compiled_step(layers(9), x)
    gradients = 9 * WIDTH * WIDTH * 4
    assert backward.memory.results >= gradients
    assert backward.memory.workspace < gradients / 2


def test_forward_and_backward_share_their_temporaries():
    x = torch.randn(64, WIDTH, requires_grad=True)
    forward, backward = compiled_step(layers(3), x)
    assert forward._workspace.place()[0] == backward._workspace.place()[0]
    assert forward._workspace.place()[1] >= max(forward.memory.workspace, backward.memory.workspace)
