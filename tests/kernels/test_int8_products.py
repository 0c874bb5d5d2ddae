"""Products of quantized data and weights: sums of products of bytes, for all signs, zero points and odd sizes."""

from __future__ import annotations

import itertools

import pytest
import torch
from host import DOTS, runs
from torch import nn

import pipeline

#: (rows, sum, columns)
SIZES = [(1, 256, 96), (3, 130, 33), (8, 64, 2), (37, 75, 130), (2, 35, 40)]

SIGNS = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


class Quantizing(nn.Module):
    """A linear layer that quantizes its data by a scale and a zero point, of weights that are quantized by column."""

    def __init__(self, data: torch.dtype, weight: torch.dtype, length: int, columns: int, zeros: str):
        super().__init__()
        low, high = SIGNS[weight]
        self.register_buffer("q", torch.randint(low, high + 1, (columns, length), dtype=weight))
        self.register_buffer("scale", torch.rand(columns, 1) / 100 + 0.001)
        self.register_buffer("zero", torch.randint(low, high + 1, (columns, 1)) if "weight" in zeros else None)
        self.bounds = SIGNS[data]
        self.data = data
        self.data_zero = 17 if "data" in zeros else 0

    def quantized(self, x: torch.Tensor) -> torch.Tensor:
        """The data as bytes."""
        low, high = self.bounds
        return (x / 0.03).round().add(self.data_zero).clamp(low, high).to(self.data)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.dequantized(self.quantized(x), x.dtype), self.weight(x.dtype))

    def dequantized(self, q: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
        """The data again."""
        return (q.to(torch.int32) - self.data_zero).to(kind) * 0.03

    def weight(self, kind: torch.dtype) -> torch.Tensor:
        """The weight that the layer stands for."""
        whole = self.q.to(torch.int32) if self.zero is None else self.q.to(torch.int64) - self.zero
        return whole.to(kind) * self.scale.to(kind)


def said(executable: pipeline.Executable, pass_name: str) -> list[str]:
    """What a pass said that it did."""
    return [remark.reason for remark in executable.remarks if (remark.pass_name, remark.kind) == (pass_name, "passed")]


@pytest.mark.parametrize("zeros", ["none", "data", "weight", "data and weight"])
@pytest.mark.parametrize(("data", "weight"), itertools.product(SIGNS, SIGNS), ids=str)
def test_products(data: torch.dtype, weight: torch.dtype, zeros: str) -> None:
    torch.manual_seed(0)
    for rows, length, columns in SIZES:
        model = Quantizing(data, weight, length, columns, zeros)
        x = torch.randn(rows, length)
        executable = pipeline.compile(model, (x,), num_threads=1)
        assert said(executable, "contract-in-int8") == ["adds up products of bytes"] * DOTS
        exact = model.dequantized(model.quantized(x), torch.float64) @ model.weight(torch.float64).T
        error = (executable(x).double() - exact).abs().max() / exact.abs().max()
        assert error < 1e-6, (rows, length, columns)


@pytest.mark.parametrize("groups", [(), (1,), (1, 1)], ids=str)
def test_scales_are_applied_in_the_register_tile(groups: tuple[int, ...]) -> None:
    """However many dims of size 1 the scales of columns have."""
    q, scale = torch.randint(-128, 128, (96, *groups, 256), dtype=torch.int8), torch.rand(96, *groups, 1) / 100

    def function(x: torch.Tensor) -> torch.Tensor:
        data = (x / 0.03).round().clamp(-128, 127).to(torch.int8).float() * 0.03
        return nn.functional.silu(data @ (q.float() * scale).view(96, 256).T)

    x = torch.randn(40, 256)
    executable = pipeline.compile(function, (x,))
    if DOTS:
        assert any("with 1 epilogues" in reason for reason in said(executable, "tile-and-vectorize"))
    torch.testing.assert_close(executable(x), function(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_integers(rows: int) -> None:
    w = torch.randint(-128, 128, (96, 200), dtype=torch.int8)

    class Integers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("w", w)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(torch.int32) @ self.w.to(torch.int32).T

    x = torch.randint(-128, 128, (rows, 200), dtype=torch.int8)
    executable = pipeline.compile(Integers(), (x,), num_threads=1)
    assert said(executable, "contract-in-int8") == ["adds up products of bytes"]
    assert torch.equal(executable(x), Integers()(x))


def test_extremes_do_not_saturate() -> None:
    model = Quantizing(torch.uint8, torch.int8, 2048, 32, "none")
    model.q.fill_(-128)
    x = torch.full((2, 2048), 1e6)
    exact = model.dequantized(model.quantized(x), torch.float64) @ model.weight(torch.float64).T
    got = pipeline.compile(model, (x,))(x).double()
    if DOTS:
        torch.testing.assert_close(got, exact, rtol=1e-6, atol=0)
    else:  # sums in float32, of terms of one sign
        assert (got - exact).abs().max() < (model(x).double() - exact).abs().max() / 2


def test_batches_of_rows_and_threads() -> None:
    model, x = Quantizing(torch.uint8, torch.int8, 96, 160, "data"), torch.randn(2, 3, 5, 96)
    one, two = (pipeline.compile(model, (x,), num_threads=threads) for threads in (1, 2))
    assert torch.equal(one(x), two(x))
    torch.testing.assert_close(one(x), model(x), rtol=1e-4, atol=1e-4)


def test_symbolic_rows() -> None:
    model, x = Quantizing(torch.uint8, torch.int8, 96, 160, "data and weight"), torch.randn(3, 96)
    executable = pipeline.compile(model, (x,), dynamic_shapes=({0: torch.export.Dim("rows", max=64)},))
    for rows in (0, 1, 2, 17, 64):
        x = torch.randn(rows, 96)
        torch.testing.assert_close(executable(x), model(x), rtol=1e-4, atol=1e-4)


def test_weights_lie_in_quads_and_are_refreshed() -> None:
    model, x = Quantizing(torch.uint8, torch.int8, 512, 256, "data"), torch.randn(4, 512)
    executable = pipeline.compile(model, (x,), num_threads=1)
    assert said(executable, "pack-weights") == ["reads its weight in panels of 32 columns of quads"] * DOTS or not DOTS
    model.q.copy_(model.q.flip(0))
    torch.testing.assert_close(executable(x), model(x), rtol=1e-4, atol=1e-4)


def test_sums_that_may_not_fit_are_left() -> None:
    model, x = Quantizing(torch.uint8, torch.int8, 40_000, 2, "none"), torch.randn(1, 40_000)
    executable = pipeline.compile(model, (x,))
    assert not said(executable, "contract-in-int8")
    torch.testing.assert_close(executable(x), model(x), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_processors_without_dot_products(cpu: str) -> None:
    model, x = Quantizing(torch.int8, torch.int8, 130, 70, "data and weight"), torch.randn(3, 130)
    executable = pipeline.compile(model, (x,), cpu=cpu)
    assert not said(executable, "contract-in-int8")
    if runs(cpu):
        torch.testing.assert_close(executable(x), model(x), rtol=1e-4, atol=1e-4)
