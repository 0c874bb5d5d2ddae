"""Products of bf16 and f16 with quantized weights: read as bytes, and by dot products of bf16 where these are exact."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from function_model import Function
from host import BF16_DOTS, WITHOUT_DOTS
from torch import Tensor, nn

import pipeline

#: (rows, sum, columns): odd and even sums, masks, less than a pair, more than a block of terms, rows with a panel.
SIZES = [(1, 256, 40), (3, 33, 17), (2, 1, 40), (13, 65, 33), (70, 448, 130), (30, 66, 272), (2, 131, 33)]

#: How the two factors are multiplied.
PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "x @ w": lambda x, w: x @ w,
    "linear": lambda x, w: nn.functional.linear(x, w.mT),
    "w.T @ x.T": lambda x, w: w.mT @ x.mT,
    "batches": lambda x, w: torch.bmm(torch.stack([x, x * 2, -x]), w.expand(3, *w.shape)),
}


def _nibbles(x: Tensor, q: Tensor) -> Tensor:
    """Two numbers of four bits of each byte, of rows that follow each other."""
    return torch.stack([q & 15, q >> 4], 1).flatten(0, 1)[: x.shape[-1]].to(x.dtype) - 8


#: How a weight [sum, columns] is dequantized: of the data, bytes with and without a sign, scales and zero points.
WEIGHTS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    "bytes": lambda x, q, u, s, z: q.to(x.dtype),
    "bytes without a sign": lambda x, q, u, s, z: u.to(x.dtype),
    "scales": lambda x, q, u, s, z: q.to(x.dtype) * s,
    "scales in f32": lambda x, q, u, s, z: (q.float() * s.float()).to(x.dtype),
    "zero points": lambda x, q, u, s, z: (u.to(x.dtype) - z.to(x.dtype)) * s,
    "zero points in integers": lambda x, q, u, s, z: (u.int() - z.int()).to(x.dtype) * s,
    "two scales": lambda x, q, u, s, z: q.to(x.dtype) * s * x.new_tensor(0.3),
    "nibbles": lambda x, q, u, s, z: _nibbles(x, u) * s,
    "nibbles with zero points": lambda x, q, u, s, z: (_nibbles(x, u) - s * 100) * s,
}

#: Those that are integers of eight bits: for one row or two it would take longer to make these bf16.
INTEGERS = ("bytes", "bytes without a sign")


def factors(size: tuple[int, int, int], dtype: torch.dtype) -> tuple[Tensor, dict[str, Tensor]]:
    rows, length, columns = size
    torch.manual_seed(0)
    buffers = {
        "q": torch.randint(-128, 128, (length, columns), dtype=torch.int8),
        "u": torch.randint(0, 256, (length, columns), dtype=torch.uint8),
        "s": (torch.rand(columns) / 50 + 1e-3).to(dtype),
        "z": torch.randint(0, 256, (columns,), dtype=torch.uint8),
    }
    return torch.randn(rows, length).to(dtype), buffers


class Products(nn.Module):
    """The products of data with weights in several forms, which are buffers."""

    def __init__(self, product: Callable[[Tensor, Tensor], Tensor], buffers: dict[str, Tensor], forms: list[str]):
        super().__init__()
        self.product, self.forms = product, forms
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)

    def weights(self, x: Tensor) -> list[Tensor]:
        return [WEIGHTS[form](x, self.q, self.u, self.s, self.z) for form in self.forms]

    def forward(self, x: Tensor) -> list[Tensor]:
        return [self.product(x, weight) for weight in self.weights(x)]

    def check(self, found: list[Tensor], x: Tensor) -> None:
        """Each result beside the sum in float64 of what eager mode dequantizes."""
        for form, weight, got in zip(self.forms, self.weights(x), found, strict=True):
            exact = self.product(x.double(), weight.double())
            sizes = self.product(x.double().abs(), weight.double().abs()).abs()
            bound = torch.finfo(x.dtype).eps * exact.abs() + (x.shape[-1] + 2) * 2.0**-23 * sizes + 1e-6
            assert got.dtype == x.dtype and ((got - exact).abs() <= bound).all(), form


def remarks(executable: pipeline.Executable, name: str, outcome: str = "passed") -> list[str]:
    return [remark.reason for remark in executable.remarks if remark.pass_name == name and remark.kind == outcome]


@pytest.mark.parametrize(
    ("product", "size", "dtype"),
    [
        *(("x @ w", size, torch.bfloat16) for size in SIZES),
        *((product, SIZES[3], torch.bfloat16) for product in PRODUCTS if product != "x @ w"),
        *(("x @ w", size, torch.float16) for size in SIZES[::2]),
        ("x @ w", SIZES[5], torch.float16),
    ],
    ids=str,
)
def test_products(product: str, size: tuple[int, int, int], dtype: torch.dtype) -> None:
    x, buffers = factors(size, dtype)
    model = Products(PRODUCTS[product], buffers, list(WEIGHTS))
    executable = pipeline.compile(model, (x,), fallback="error")
    model.check(executable(x), x)
    if size[1] * size[2] > 1000:  # smaller weights may well be computed once
        assert len(remarks(executable, "fuse-dequantization")) == len(WEIGHTS)
    dots = remarks(executable, "contract-in-bf16")
    rows = size[0] * (3 if product == "batches" else 1)
    is_taken = BF16_DOTS and dtype == torch.bfloat16 and size[1] >= 16
    assert len(dots) == (len(WEIGHTS) - (len(INTEGERS) if rows <= 2 else 0) if is_taken else 0)
    if size == SIZES[5]:
        panels = [
            reason for reason in remarks(executable, "tile-and-vectorize") if "of all rows from a panel" in reason
        ]
        assert len(panels) >= len(WEIGHTS) - (0 if dots else len(INTEGERS))


@pytest.mark.parametrize("cpu", ["native", WITHOUT_DOTS])
def test_rows_that_are_not_known(cpu: str) -> None:
    """One program for any number of rows, on CPUs with dot products of bf16 and without."""
    x, buffers = factors((7, 97, 272), torch.bfloat16)
    model = Products(PRODUCTS["linear"], buffers, list(WEIGHTS))
    executable = pipeline.compile(
        model, (x,), cpu=cpu, dynamic_shapes=({0: torch.export.Dim("rows")},), fallback="error"
    )
    has_dots = BF16_DOTS and cpu == "native"
    assert len(remarks(executable, "contract-in-bf16")) == (len(WEIGHTS) if has_dots else 0)
    for rows in (0, 1, 2, 3, 29):
        data = torch.randn(rows, 97).bfloat16()
        model.check(executable(data), data)


def test_weights_of_16_bits_that_are_not_quantized_stay_so() -> None:
    """Beside quantized ones: they are not widened, and multiplied as before."""
    x, buffers = factors((8, 128, 64), torch.bfloat16)
    model = Function(lambda x, w: (x @ w, x @ buffers["q"].to(x.dtype)))
    other = torch.randn(128, 64).bfloat16()
    executable = pipeline.compile(model, (x, other), fallback="error")
    alone = pipeline.compile(Function(lambda x, w: x @ w), (x, other), fallback="error")
    plain, quantized = executable(x, other)
    assert torch.equal(plain, alone(x, other))
    Products(PRODUCTS["x @ w"], buffers, ["bytes"]).check([quantized], x)
    assert len(remarks(executable, "contract-in-bf16")) == (1 if BF16_DOTS else 0)


@pytest.mark.parametrize(
    "options", [{"weights": "int8"}, {"weights": "int8", "group": 32}, {"weights": "int4"}], ids=str
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("rows", [1, 9])
def test_weights_that_are_to_be_quantized(rows: int, dtype: torch.dtype, options: dict[str, object]) -> None:
    """With a bias and without, as in language models: none stays in 16 bits."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 192, bias=False), nn.SiLU(), nn.Linear(192, 256)).to(dtype)
    x = torch.randn(rows, 256).to(dtype)
    executable = pipeline.compile(model, (x,), **options, fallback="error")
    assert len(remarks(executable, "quantize-weights")) == 2
    executable(x)
    bits = 4.5 if options["weights"] == "int4" else 8.0
    assert executable.memory.prepared <= (256 * 192 * 2) * bits / 8 * 1.2 + 2048
    got, full = executable(x), copy.deepcopy(model).double()(x.double())
    error = ((got - full).norm() / full.norm()).item()
    assert 1e-4 < error < (0.2 if options["weights"] == "int4" else 0.015)


def test_data_is_rounded_beside_bytes_where_that_is_asked_for() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(256, 192, bias=False), torch.randn(9, 256)
    executable = pipeline.compile(model, (x,), weights="int8", precision="bf16")
    assert remarks(executable, "contract-in-bf16") == (
        ["dot products of bf16 and dequantized factors, 1 operand rounded"] if BF16_DOTS else []
    )
    exact = pipeline.compile(model, (x,), weights="int8")(x).double()
    rounded = pipeline.compile(model, (x.bfloat16().float(),), weights="int8")(x.bfloat16().float())
    expected = rounded if BF16_DOTS else exact
    assert torch.allclose(executable(x).double(), expected.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows_that_have_a_weight_each_share_no_panel(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    q, scale = torch.randint(-128, 128, (40, 66, 272), dtype=torch.int8), (torch.rand(40, 1, 272) / 50).to(dtype)
    model = Function(lambda x: torch.bmm(x.unsqueeze(1), q.to(x.dtype) * scale))
    x = torch.randn(40, 66).to(dtype)
    executable = pipeline.compile(model, (x,), fallback="error")
    weight = (q.to(dtype) * scale).double()
    exact, sizes = (torch.bmm(x.double().unsqueeze(1), weight), torch.bmm(x.double().abs().unsqueeze(1), weight.abs()))
    assert ((executable(x) - exact).abs() <= torch.finfo(dtype).eps * exact.abs() + 68 * 2.0**-23 * sizes).all()
    assert not any("panel" in reason for reason in remarks(executable, "tile-and-vectorize"))
