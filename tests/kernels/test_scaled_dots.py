"""Products of bytes whose weights have scales of groups, or four bits: all signs, zero points, odd sizes and groups."""

from __future__ import annotations

import itertools

import pytest
import torch
from host import DOTS, WITHOUT_DOTS, runs
from test_int8_products import SIGNS, said
from torch import nn

import pipeline

#: (rows, sum, columns, group): whole panels and others, groups of whole quads and words and others, all of a column.
SIZES = [
    (1, 256, 96, 32),
    (1, 256, 128, 256),
    (3, 130, 33, 10),
    (8, 64, 2, 16),
    (37, 108, 130, 9),
    (2, 72, 250, 24),
    (1, 90, 64, 18),
    (65, 128, 64, 64),
    (1, 128, 1, 32),
]


class Grouped(nn.Module):
    """A linear layer that quantizes its data, of weights that are quantized by groups of columns."""

    def __init__(self, data: torch.dtype, weight: torch.dtype, bits: int, zeros: str, size: tuple[int, ...]):
        super().__init__()
        _, length, columns, group = size
        low, high = SIGNS[weight] if bits == 8 else (-8, 7) if weight == torch.int8 else (0, 15)
        shape = (columns, length // group, 1)
        self.register_buffer("q", torch.randint(low, high + 1, (columns, length // group, group), dtype=weight))
        self.register_buffer("scale", torch.rand(shape) / 100 + 0.001)
        self.register_buffer("zero", torch.randint(low, high + 1, shape, dtype=weight) if "weight" in zeros else None)
        self.low, self.high, self.data, self.bounds = low, high, data, SIGNS[data]
        self.data_zero = 17 if "data" in zeros else 0

    def quantized(self, x: torch.Tensor) -> torch.Tensor:
        """The data as bytes."""
        low, high = self.bounds
        return (x / 0.03).round().add(self.data_zero).clamp(low, high).to(self.data)

    def weight(self, kind: torch.dtype) -> torch.Tensor:
        """The weight that the layer stands for."""
        q = self.q if self.high > 15 else ((self.q - self.low) & 15) + self.low
        whole = q.to(torch.int32)
        whole = whole if self.zero is None else whole - self.zero.to(torch.int32)
        return (whole.to(kind) * self.scale.to(kind)).flatten(1)

    def product(self, x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
        """What is computed, in some type."""
        return nn.functional.linear(self.dequantized(x, kind), self.weight(kind))

    def terms(self, x: torch.Tensor) -> torch.Tensor:
        """The terms of each sum without their signs, added up in float64."""
        return self.dequantized(x, torch.float64).abs() @ self.weight(torch.float64).abs().T

    def dequantized(self, x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
        """What the bytes of the data stand for."""
        return (self.quantized(x).to(torch.int32) - self.data_zero).to(kind) * 0.03

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.product(x, x.dtype)


class Several(nn.Module):
    """Some layers, each with data of its own."""

    def __init__(self, layers: list[Grouped]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, *data: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self.layers, data, strict=True)]


@pytest.mark.parametrize("zeros", ["none", "data", "weight", "data and weight"])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("cpu", ["native", WITHOUT_DOTS])
def test_products(cpu: str, bits: int, zeros: str) -> None:
    torch.manual_seed(0)
    kinds = list(itertools.product(SIGNS, SIGNS))
    chosen = [(*kinds[(number + turn) % len(kinds)], size) for turn in range(2) for number, size in enumerate(SIZES)]
    model = Several([Grouped(data, weight, bits, zeros, size) for data, weight, size in chosen])
    inputs = tuple(torch.randn(size[0], size[1]) for *_, size in chosen)
    executable = pipeline.compile(model, inputs, num_threads=1, cpu=cpu)
    if cpu == "native" and DOTS:
        passed = said(executable, "contract-in-int8")
        assert len(passed) == len(chosen)
        assert sum("each group with its scale" in reason for reason in passed) >= len(chosen) - 2
    elif cpu != "native":
        assert not said(executable, "contract-in-int8")
    if bits == 4:
        even = sum(size[3] % 2 == 0 and size[2] > 1 for *_, size in chosen)
        assert len(said(executable, "pack-nibbles")) == even
    for layer, x, got, (*_, size) in zip(model.layers, inputs, executable(*inputs), chosen, strict=True):
        exact = layer.product(x, torch.float64)
        size_of_sums = exact if runs("skylake-avx512") else layer.terms(x)  # fewer sums run side by side there
        assert (got.double() - exact).abs().max() < 1.5e-6 * size_of_sums.abs().max(), size


def test_extremes_do_not_wrap() -> None:
    """The largest sums of a group: all bytes at the ends of their range."""
    size = (2, 4096, 64, 2048)
    for data, weight, bits in itertools.product(SIGNS, SIGNS, (4, 8)):
        model = Grouped(data, weight, bits, "data and weight", size)
        model.zero.fill_(model.low)
        model.q.fill_(model.high)
        x = torch.full((2, 4096), 1e3)
        x[1] = -1e3
        exact = model.product(x, torch.float64)
        got = pipeline.compile(model, (x,))(x).double()
        error = (got - exact).abs().max()
        if DOTS:
            assert error < 1e-6 * exact.abs().max(), (data, weight, bits)
        else:  # sums in float32, of terms of one sign
            assert error < (model(x).double() - exact).abs().max() / 2, (data, weight, bits)


def test_symbolic_rows_and_threads() -> None:
    torch.manual_seed(0)
    model = Grouped(torch.int8, torch.int8, 4, "weight", (3, 256, 160, 32))
    rows = torch.export.Dim("rows", max=64)
    one, two = (
        pipeline.compile(model, (torch.randn(3, 256),), dynamic_shapes=({0: rows},), num_threads=threads)
        for threads in (1, 2)
    )
    for count in (0, 1, 2, 5, 17, 64):
        x = torch.randn(count, 256)
        torch.testing.assert_close(one(x).double(), model.product(x, torch.float64), rtol=1e-5, atol=1e-5)
        assert torch.equal(one(x), two(x))


def test_zero_points_that_may_be_no_bytes_stay_in_floats() -> None:
    model = Grouped(torch.int8, torch.int8, 8, "weight", (2, 128, 64, 32))
    model.zero = torch.randint(-1000, 1000, (64, 4, 1), dtype=torch.int32)
    x = torch.randn(2, 128)
    executable = pipeline.compile(model, (x,))
    assert not said(executable, "contract-in-int8")
    torch.testing.assert_close(executable(x).double(), model.product(x, torch.float64), rtol=1e-5, atol=1e-3)
