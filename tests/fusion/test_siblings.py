"""Products of the same data joined into one, and slices taken inside of kernels, against eager."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from torch import nn

import pipeline


class Gated(nn.Module):
    """The feed-forward part of a Llama: down(silu(gate(x)) * up(x))."""

    def __init__(self, width, inner, bias):
        super().__init__()
        self.gate, self.up = nn.Linear(width, inner, bias), nn.Linear(width, inner, bias)
        self.down = nn.Linear(inner, width, bias)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Convolutions(nn.Module):
    """Two 1x1 convolutions of different numbers of channels that meet."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(8, 6, 1), nn.Conv2d(8, 6, 1, bias=True)

    def forward(self, x):
        return self.a(x).sigmoid() * self.b(x).tanh()


class QueryKeyValue(nn.Module):
    """Three products whose results go different ways."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (4, 8)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        return F.scaled_dot_product_attention(q, k, v)


def joined(executable):
    return [remark.kind for remark in executable.remarks if remark.pass_name == "fuse-horizontal-contractions"]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 5, 24), (1, 24), (2, 3, 7, 24)])
def test_gated_units_are_joined(shape, bias):
    torch.manual_seed(0)
    model, x = Gated(24, 37, bias).eval(), torch.randn(shape)
    executable = pipeline.compile(model, (x,))
    torch.testing.assert_close(executable(x), model(x))
    assert joined(executable) == ["passed"]
    apart = pipeline.compile(model, (x,), disable=["fuse-horizontal-contractions"])
    assert torch.equal(executable(x), apart(x))


def test_gated_units_of_dynamic_batches():
    torch.manual_seed(0)
    model = Gated(16, 20, True).eval()
    inputs = [torch.randn(size, 16) for size in (5, 2, 33)]
    executable = pipeline.compile(model, (inputs[0],), dynamic_shapes=({0: torch.export.Dim("n")},))
    for x in inputs:
        torch.testing.assert_close(executable(x), model(x))
    assert joined(executable) == ["passed"]


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16], ids=str)
def test_gated_units_of_other_dtypes(kind):
    torch.manual_seed(0)
    model, x = Gated(16, 20, True).eval().to(kind), torch.randn(5, 16).to(kind)
    torch.testing.assert_close(pipeline.compile(model, (x,))(x), model(x))


def test_new_weights_are_joined_anew():
    torch.manual_seed(0)
    model, x = Gated(16, 20, True).eval(), torch.randn(5, 16)
    executable = pipeline.compile(model, (x,))
    with torch.no_grad():
        model.up.weight.mul_(2)
        model.gate.bias.add_(1)
    executable.refresh()
    torch.testing.assert_close(executable(x), model(x))


def test_convolutions_that_meet_are_joined():
    torch.manual_seed(0)
    model, x = Convolutions().eval(), torch.randn(2, 8, 5, 7)
    executable = pipeline.compile(model, (x,))
    torch.testing.assert_close(executable(x), model(x))
    assert joined(executable) == ["passed"]


def test_query_key_and_value_stay_apart():
    torch.manual_seed(0)
    model, x = QueryKeyValue().eval(), torch.randn(2, 5, 32)
    executable = pipeline.compile(model, (x,))
    torch.testing.assert_close(executable(x), model(x))
    assert joined(executable) == ["missed"]


def rotate_half(x):
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1) * 2


SLICED = {
    "chunk": lambda x: (lambda parts: parts[0] * parts[1].sigmoid())(x.chunk(2, -1)),
    "rows": lambda x: x[1:3] + x[2:4],
    "columns": lambda x: x[:, 3:10].exp().sum(-1),
    "steps": lambda x: x[::2, 1::3] * 2,
    "split": lambda x: [part.relu() for part in x.split(4, -1)],
    "heads": lambda x: x[:, 4:].unflatten(1, (2, 4)).transpose(0, 1) + 1,
    "product": lambda x: x[:, :6] @ x[:4, 6:].transpose(0, 1)[:, :3] if x.shape[1] == 12 else x[:3, :2] @ x[:2],
    "rotate": rotate_half,
    "written": lambda x: x.index_fill(0, torch.tensor([0]), 7.0)[:, 2:9] + 1,
}


@pytest.mark.parametrize("name", SLICED)
@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.int32], ids=str)
def test_slices_are_taken_inside_of_kernels(name, kind):
    torch.manual_seed(0)
    x = (torch.randn(5, 12) * 4).to(kind)
    if not kind.is_floating_point and name in ("chunk", "columns", "product"):
        x = x.float()
    function = Function(SLICED[name])
    result, wanted = pipeline.compile(function, (x,))(x), function(x)
    torch.testing.assert_close(result, wanted)


SIBLINGS = {
    "sums": lambda x: (x.sum(-1), (x * x).sum(-1), x.amax(-1)),
    "columns": lambda x: (x.amax(0), x.amin(0), x.sum(0)),
    "casts": lambda x: (x.half(), x.to(torch.bfloat16), x.to(torch.int32), x > 0),
    "functions": lambda x: (x.sin(), x.cos(), x.tanh(), x.exp(), x.sqrt()),
    "two tensors": lambda x: (x + x.flip(0), x * x.flip(0)),
    "result of one": lambda x: (x.relu(), x.relu().sum(0) + x, x.exp()),
}


@pytest.mark.parametrize("name", SIBLINGS)
@pytest.mark.parametrize("shape", [(5, 33), (1, 1), (64, 7), (3, 0)])
def test_siblings_share_a_kernel(name, shape):
    if 0 in shape and name in ("sums", "columns"):
        shape = (4, 2)
    torch.manual_seed(0)
    x, function = torch.randn(shape) * 3, Function(SIBLINGS[name])
    executable = pipeline.compile(function, (x,))
    torch.testing.assert_close(executable(x), function(x), equal_nan=True)


def test_siblings_of_dynamic_sizes_share_a_kernel():
    function = Function(lambda x: (x.sum(-1), (x * x).sum(-1)))
    inputs = [torch.randn(3, size) for size in (20, 5, 64)]
    dim = torch.export.Dim("n")
    executable = pipeline.compile(function, (inputs[0],), dynamic_shapes=(({1: dim},),))
    for x in inputs:
        torch.testing.assert_close(executable(x), function(x))


def test_one_kernel_where_there_were_several():
    x = torch.randn(16, 32)
    function = Function(SIBLINGS["columns"])
    assert len(pipeline.compile(function, (x,)).kernels) == 1
    assert len(pipeline.compile(function, (x,), disable=["fuse-siblings"]).kernels) == 3
