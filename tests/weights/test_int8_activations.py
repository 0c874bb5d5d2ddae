"""`activations="int8"`: products of bytes, how far they are off, and for what the option is."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from host import DOTS, runs
from torch import nn
from torch.export import Dim

import pipeline
from pipeline.errors import OptionError

OPTIONS: dict[str, Any] = {"weights": "int8", "activations": "int8"}


#: (weights, group)
WEIGHTS = [("int8", None), ("int8", 32), ("int4", None), ("int4", 32), ("int4", 128)]


def rounded(rows: torch.Tensor) -> torch.Tensor:
    """Rows as (integers, a scale for each), multiplied, as f64."""
    scales = (rows.abs().amax(-1, keepdim=True) / 127).clamp(min=2.0**-126)
    return (rows / scales).round().double() * scales.double()


def rounded_weight(weight: torch.Tensor, kind: str, group: int | None) -> torch.Tensor:
    """What the weights of a layer become, as f64."""
    groups = weight.detach().unflatten(1, (-1, group or weight.shape[1]))
    if kind == "int8":
        return rounded(groups).flatten(1)
    scale = ((groups.abs().amax(2, keepdim=True) / 7.5) * (1 + 2.0**-8)).bfloat16().float()
    return ((groups / scale).round().clamp(-8, 7).double() * scale.double()).flatten(1)


def agree(got: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> None:
    """Whether results are those products, but for a step of an element that lies halfway between two integers.

    The weight is what it is rounded to.
    """
    step = (x.abs().amax(-1, keepdim=True) / 127).double() * weight.abs().amax()
    error = (got.double() - rounded(x) @ weight.T).abs()
    size = rounded(x).abs() @ weight.abs().T
    assert (error <= 1.01 * step + 1e-6 * size).all()
    assert (error <= 1e-5 * size).float().mean() > 0.98


def products_of_bytes(executable: pipeline.Executable) -> int:
    said = [remark for remark in executable.remarks if remark.pass_name == "contract-in-int8"]
    return sum(remark.kind == "passed" for remark in said)


@pytest.mark.parametrize("size", [(1, 256, 512), (3, 384, 70), (37, 130, 97), (64, 320, 33)], ids=str)
@pytest.mark.parametrize(("kind", "group"), WEIGHTS, ids=str)
def test_results_are_products_of_bytes(kind: str, group: int | None, size: tuple[int, int, int]) -> None:
    rows, length, columns = size
    if group is not None and length % group:
        group = 26 if length % 26 == 0 else 64
    torch.manual_seed(0)
    model, x = nn.Linear(length, columns, bias=False).requires_grad_(False), torch.randn(rows, length)
    options = {"weights": kind, "group": group, "activations": "int8"}
    executable = pipeline.compile(model, (x,), num_threads=1, **options)
    assert products_of_bytes(executable) == DOTS
    weight = rounded_weight(model.weight, kind, group)
    agree(executable(x), x, weight)
    turned = torch.randn(length, rows).T
    agree(executable(turned), turned, weight)


@pytest.mark.parametrize("cpu", ["skylake-avx512", "x86-64-v3"])
def test_processors_without_dot_products_of_bytes(cpu: str) -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(256, 96, bias=False).requires_grad_(False), torch.randn(3, 256)
    for kind, group in WEIGHTS:
        executable = pipeline.compile(model, (x,), cpu=cpu, weights=kind, group=group, activations="int8")
        assert products_of_bytes(executable) == 0
        if runs(cpu):
            agree(executable(x), x, rounded_weight(model.weight, kind, group))


def test_rows_have_scales_of_their_own() -> None:
    """Zeros, one large element, tiny and huge rows; NaN and infinity stay in their rows."""
    torch.manual_seed(0)
    model, x = nn.Linear(128, 160, bias=False).requires_grad_(False), torch.randn(8, 128)
    x[0], x[1, 5], x[2], x[3] = 0, 1e4, x[2] * 1e-30, x[3] * 1e30
    executable = pipeline.compile(model, (x,), **OPTIONS)
    got = executable(x)
    assert (got[0] == 0).all()
    agree(got, x, rounded(model.weight))
    x[4, 7], x[5, 9] = torch.nan, torch.inf
    again = executable(x)
    assert again[4].isnan().all() and not again[5].isfinite().any()
    others = [0, 1, 2, 3, 6, 7]
    assert again[others].equal(got[others])


def test_batches_of_symbolic_size_and_models_of_several_layers() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(96, 256), nn.GELU(), nn.Linear(256, 96)).eval().requires_grad_(False)
    rows, length = Dim("rows", max=64), Dim("length", max=64)
    executable = pipeline.compile(model, (torch.randn(3, 5, 96),), dynamic_shapes=({0: rows, 1: length},), **OPTIONS)
    assert products_of_bytes(executable) == 2 * DOTS
    for_servers = pipeline.compile(model, (torch.randn(3, 5, 96),), cpu="sapphirerapids", **OPTIONS)
    assert products_of_bytes(for_servers) == 2
    for shape in ((3, 5, 96), (2, 1, 96), (1, 17, 96), (0, 4, 96), (4, 0, 96)):
        x = torch.randn(shape)
        got, exact = executable(x), model(x)
        assert got.shape == exact.shape
        assert not x.numel() or (got - exact).abs().max() < 0.04 * exact.abs().max()


def test_data_that_several_weights_read_is_rounded_once() -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key = nn.Linear(128, 128), nn.Linear(128, 64)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.query(x).relu(), self.key(x).tanh()

    model, x = Heads().eval(), torch.randn(4, 128)
    executable = pipeline.compile(model, (x,), **OPTIONS)
    assert executable.ir("fused").split("func.func @main")[1].count("math.roundeven") == 1
    with torch.no_grad():
        for got, exact in zip(executable(x), model(x), strict=True):
            assert (got - exact).abs().max() < 0.04


def test_products_whose_weights_stay_in_floats_read_floats() -> None:
    model, x = nn.Linear(64, 32).requires_grad_(False), torch.randn(4, 64)
    executable = pipeline.compile(model, (x,), **OPTIONS)
    torch.testing.assert_close(executable(x), model(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activations": "int8"}, "activations='int8': is for weights='int8' and weights='int4'"),
        ({"activations": "int4"}, "activations='int4': expected one of f32, int8"),
        ({**OPTIONS, "target": "vulkan"}, "for the target cpu only, not for vulkan"),
    ],
)
def test_what_it_is_not_for(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        pipeline.compile(nn.Linear(64, 64), (torch.zeros(1, 64),), **options)
