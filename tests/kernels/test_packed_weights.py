"""Products whose weights @prepare packs into panels, against eager in float64, with what runs behind them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from host import VECTOR_BYTES
from torch import nn

import pipeline


def packed(exe):
    """How many kernels read a packed weight."""
    return sum(1 for one in exe.remarks if one.pass_name == "pack-weights" and one.kind == "passed")


def check(model, *args, kernels=1, **options):
    """Compiles a model that has to pack the weights of so many kernels; compares it with eager in float64."""
    model = model.eval().requires_grad_(False)
    exe = pipeline.compile(model, args, **options)
    assert packed(exe) == kernels
    found = exe(*args)
    torch.testing.assert_close(found, model(*args))
    exact = model.double()(*(one.double() if one.is_floating_point() else one for one in args))
    model.float()
    torch.testing.assert_close(found.double(), exact, atol=2e-5, rtol=1e-5)
    return exe


@pytest.mark.parametrize("rows", [4, 5, 13, 14, 15, 33])
@pytest.mark.parametrize(("inner", "columns"), [(256, 96), (257, 128), (1031, 64), (64, 1024)])
def test_linear_with_a_bias_and_a_function(rows, inner, columns):
    torch.manual_seed(0)
    check(nn.Sequential(nn.Linear(inner, columns), nn.GELU()), torch.randn(rows, inner))


@pytest.mark.parametrize(("rows", "columns"), [(4, 333), (14, 1000), (33, 257)])
def test_columns_that_do_not_fill_the_last_panel(rows, columns):
    torch.manual_seed(0)
    check(nn.Sequential(nn.Linear(130, columns), nn.GELU()), torch.randn(rows, 130))
    check(nn.Linear(130, columns, bias=False), torch.randn(2, rows, 130), cpu="x86-64")


CONVOLUTIONS = {
    "pointwise": (nn.Conv2d(260, 77, 1), (2, 260, 7, 9)),
    "window": (nn.Conv2d(33, 101, 3, padding=1), (1, 33, 15, 14)),
    "strides": (nn.Conv2d(70, 53, 5, stride=2, bias=False), (2, 70, 21, 18)),
    "dilation": (nn.Conv2d(40, 119, 3, padding=4, dilation=4), (1, 40, 13, 13)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("conv", "shape"), CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolutions_whose_channels_fill_no_blocks(conv, shape, threads):
    torch.manual_seed(0)
    options = {"num_threads": threads, "disable": ("drop-padded-taps",)}
    check(nn.Sequential(conv, nn.ReLU()), torch.randn(shape), **options)


def test_a_residual_and_two_layers():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)

        def forward(self, x):
            return x + self.down(torch.relu(self.up(x)))

    check(Block(), torch.randn(2, 9, 128), kernels=2)


def test_heads_and_a_second_result():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(192, 192) for _ in range(3))

        def forward(self, x):
            q, k, v = (layer(x).unflatten(-1, (6, 32)).transpose(1, 2) for layer in (self.q, self.k, self.v))
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    model = Heads().eval().requires_grad_(False)
    x = torch.randn(2, 11, 192)
    exe = pipeline.compile(model, (x,))
    assert packed(exe) >= 2
    torch.testing.assert_close(exe(x), model(x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_types(dtype):
    torch.manual_seed(1)
    x = torch.randn(7, 256, dtype=dtype)
    for columns in (192, 345):
        model = nn.Linear(256, columns).to(dtype).eval().requires_grad_(False)
        exe = pipeline.compile(model, (x,))
        assert packed(exe) == 1
        torch.testing.assert_close(exe(x), model(x))


def test_a_weight_with_two_uses_keeps_both():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(128, 256)

        def forward(self, ids):
            return F.linear(self.embedding(ids), self.embedding.weight)

    model, ids = Tied().eval().requires_grad_(False), torch.arange(24).view(2, 12)
    exe = pipeline.compile(model, (ids,))
    assert packed(exe) == 1
    weight = model.embedding.weight.double()
    expected = F.linear(weight[ids], weight)
    bound = 256 * torch.finfo(torch.float32).eps * F.linear(weight[ids].abs(), weight.abs())
    assert ((exe(ids) - expected).abs() <= bound).all()


def test_refresh_packs_again():
    model, x = nn.Linear(256, 96).eval().requires_grad_(False), torch.randn(5, 256)
    exe = check(model, x)
    model.weight.copy_(torch.randn(96, 256))
    exe.refresh()
    torch.testing.assert_close(exe(x), model(x))


def test_the_rows_may_change_from_call_to_call():
    model = nn.Linear(256, 96).eval().requires_grad_(False)
    rows = torch.export.Dim("rows", min=1, max=64)
    exe = pipeline.compile(model, (torch.randn(5, 256),), dynamic_shapes=({0: rows},))
    for count in (1, 2, 13, 64):
        x = torch.randn(count, 256)
        torch.testing.assert_close(exe(x), model(x))


def test_a_product_in_branches_and_in_a_loop():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = nn.Linear(160, 160)

        def forward(self, x):
            then = torch.cond(x.sum() > 0, lambda x: self.step(x).tanh(), lambda x: self.step(-x).sin(), (x,))
            return then + 1

    model = Steps().eval().requires_grad_(False)
    x = torch.randn(6, 160)
    exe = pipeline.compile(model, (x,))
    for sign in (x, -x):
        torch.testing.assert_close(exe(sign), model(sign))


@pytest.mark.parametrize("columns", [256, 1000])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows(rows, columns):
    check(nn.Linear(512, columns), torch.randn(rows, 512))


@pytest.mark.parametrize("columns", [VECTOR_BYTES // 2 + VECTOR_BYTES // 8, VECTOR_BYTES // 2 + 1])
def test_left_alone_and_said_so(columns):
    exe = check(nn.Linear(512, columns), torch.randn(8, 512), kernels=0)
    assert [one.kind for one in exe.remarks if one.pass_name == "pack-weights"] == ["missed"]


def test_disabled_and_the_same_bits():
    torch.manual_seed(2)
    model, x = nn.Linear(384, 96).eval().requires_grad_(False), torch.randn(14, 384)
    apart = pipeline.compile(model, (x,), disable=["pack-weights"])
    assert packed(apart) == 0
    assert torch.equal(apart(x), check(model, x)(x))
