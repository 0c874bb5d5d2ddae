"""Products with quantized weights, dequantized as they are read: beside eager, for all schemes and odd sizes."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pipeline

#: (bits, signed, zero points, group): the group is None for one scale a column, 0 for one scale in all.
SCHEMES = {
    "int8 by column": (8, True, False, None),
    "int8 by column, zero points": (8, True, True, None),
    "int8 in all": (8, True, False, 0),
    "uint8 by column, zero points": (8, False, True, None),
    "int8 groups of 32": (8, True, True, 32),
    "int4 groups of 16": (4, True, False, 16),
    "int4 groups of 64, zero points": (4, False, True, 64),
}

#: (rows, sum, columns)
SIZES = [
    (1, 256, 512),
    (1, 320, 33),
    (3, 192, 70),
    (8, 64, 256),
    (37, 128, 96),
    (2, 448, 2),
    (65, 576, 130),
    (30, 192, 272),
]


class Quantized(nn.Module):
    """A linear layer of quantized weights, dequantized as they are written down: (q - zero) * scale."""

    def __init__(self, bits: int, signed: bool, zeros: bool, group: int | None, size: int, columns: int):
        super().__init__()
        least = -(2 ** (bits - 1)) if signed else 0
        groups = size // group if group else 1
        kind = torch.int8 if signed else torch.uint8
        scales = (columns, groups, 1) if group != 0 else (1, 1, 1)
        self.register_buffer("q", torch.randint(least, least + 2**bits, (columns, size), dtype=kind))
        self.register_buffer("scale", torch.rand(scales) / 100 + 0.001)
        self.register_buffer("zero", torch.randint(least, least + 2**bits, scales, dtype=kind) if zeros else None)
        self.groups = groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.q.unflatten(1, (self.groups, -1)).to(x.dtype)
        if self.zero is not None:
            weight = weight - self.zero.to(x.dtype)
        return nn.functional.linear(x, (weight * self.scale).flatten(1))


def remarks(executable: pipeline.Executable, outcome: str) -> list[str]:
    """What fuse-dequantization said."""
    kept = [remark for remark in executable.remarks if remark.pass_name == "fuse-dequantization"]
    return [remark.reason for remark in kept if remark.kind == outcome]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_products(scheme: str, size: tuple[int, int, int]) -> None:
    rows, length, columns = size
    torch.manual_seed(0)
    model = Quantized(*SCHEMES[scheme], length, columns)
    x = torch.randn(rows, length)
    executable = pipeline.compile(model, (x,), num_threads=1)
    assert remarks(executable, "passed") == ["dequantizes its weight of i8 as it reads it"]
    exact = copy.deepcopy(model).double()(x.double())
    error = (executable(x).double() - exact).abs().max() / exact.abs().max()
    assert error < 2e-6


def test_threads_give_the_same_bits() -> None:
    model = Quantized(*SCHEMES["int4 groups of 64, zero points"], 512, 1024)
    x = torch.randn(5, 512)
    one, two = (pipeline.compile(model, (x,), num_threads=threads) for threads in (1, 2))
    assert torch.equal(one(x), two(x))


def test_no_copy_of_the_weight_in_floats_is_kept() -> None:
    model, x = Quantized(*SCHEMES["int8 groups of 32"], 1024, 1024), torch.randn(1, 1024)
    executable = pipeline.compile(model, (x,), num_threads=1)
    executable(x)
    assert executable.memory.prepared <= 1.3 * model.q.numel()  # a scale and a zero point for 32 elements


def test_epilogues_run_on_the_product() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = Quantized(*SCHEMES["int8 by column"], 256, 512)
            self.bias = nn.Parameter(torch.randn(512))

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return nn.functional.gelu(self.linear(x) + self.bias) + y

    model, x, y = Layer().eval(), torch.randn(3, 256), torch.randn(3, 512)
    executable = pipeline.compile(model, (x, y), num_threads=1)
    assert len([kernel for kernel in executable.kernels if "matmul" in kernel.name]) == 1
    torch.testing.assert_close(executable(x, y), model(x, y), rtol=1e-5, atol=1e-5)


def test_symbolic_rows() -> None:
    model, x = Quantized(*SCHEMES["int4 groups of 16"], 256, 96), torch.randn(3, 256)
    rows = torch.export.Dim("rows", max=64)
    executable = pipeline.compile(model, (x,), dynamic_shapes=({0: rows},))
    assert remarks(executable, "passed")
    for count in (0, 1, 2, 17, 64):
        x = torch.randn(count, 256)
        torch.testing.assert_close(executable(x), model(x), rtol=1e-5, atol=1e-5)


def test_a_weight_that_other_ops_read_too() -> None:
    class Shared(Quantized):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + self.q.float().sum(1)

    model, x = Shared(*SCHEMES["int8 by column"], 256, 96), torch.randn(2, 256)
    executable = pipeline.compile(model, (x,))
    torch.testing.assert_close(executable(x), model(x), rtol=1e-4, atol=1e-3)


def test_one_column() -> None:
    model, x = Quantized(*SCHEMES["int8 groups of 32"], 448, 1), torch.randn(2, 448)
    executable = pipeline.compile(model, (x,))
    assert remarks(executable, "passed")
    torch.testing.assert_close(executable(x), model(x), rtol=1e-5, atol=1e-5)
