"""How many bytes a step keeps and computes in: no more than a layer's for any depth, and what eager keeps."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import pipeline
from pipeline.runtime.executable import Executable

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


class Heads(nn.Module):
    """An attention of four heads, whose queries, keys and values lie beside each other for each token."""

    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in self.into(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_is_kept_of_attentions_lies_in_rows(dynamic, monkeypatch):
    """Or each call of backward would copy it."""
    given = []
    call = Executable.__call__

    def noted(self, *args, **kwargs):
        given.extend(arg for arg in args if isinstance(arg, torch.Tensor))
        return call(self, *args, **kwargs)

    monkeypatch.setattr(Executable, "__call__", noted)
    model = Heads()
    compiled = torch.compile(model, backend="pipeline", dynamic=dynamic)
    for tokens in (6, 9):
        x = torch.randn(2, tokens, 32)
        found = torch.autograd.grad(compiled(x).sum(), [*model.parameters()])
        torch.testing.assert_close(found, torch.autograd.grad(model(x).sum(), [*model.parameters()]))
    assert len(given) > 20
    assert all(tensor.is_contiguous() for tensor in given)


def test_one_value_is_kept_of_a_product_and_its_bias():
    """What forward hands on is kept, not the product in front of the bias, which nothing else reads."""
    model = nn.Sequential(nn.Linear(64, 256), nn.LayerNorm(256), nn.Linear(256, 8))
    x = torch.randn(32, 64)
    forward, _ = compiled_step(model, x)
    wide = 4 * 32 * 256
    assert forward.memory.workspace + forward.memory.results < 2.2 * wide + 4 * 64 * 256 * 1.1


def test_temporaries_of_one_type_lie_where_others_were():
    """cse makes one tensor.empty of those of a type, which would be needed from the first layer to the last."""
    sizes = [64, 512, 64, 640, 64, 512, 64, 640, 64]
    model = nn.Sequential(*(nn.Sequential(nn.Linear(*pair), nn.GELU()) for pair in zip(sizes, sizes[1:], strict=False)))
    with torch.no_grad():
        exe = pipeline.compile(model.eval(), (torch.randn(256, 64),), num_threads=1)
    assert exe.memory.workspace <= 4 * 256 * (640 + 64) + 4096
