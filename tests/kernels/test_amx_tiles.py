"""Products of bf16 and of bytes in AMX's tiles, against float64; a CPU without AMX computes them by dot products."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import pipeline
from pipeline.targets.cpu.isa import isa

AMX = isa("native").amx

#: Blocks of two tiles of rows, of one, and parts of one; single rows are sums of dot products.
ROWS = [1, 3, 4, 7, 15, 16, 17, 31, 32, 33, 48, 63, 100]

#: Panels of two tiles of columns, and less than that.
COLUMNS = [8, 16, 24, 32, 96]

#: Whole steps of a sum, what is left of one, and both.
SUMS = [2, 30, 32, 34, 64, 80]


class Products(nn.Module):
    """A product with a weight for each size, with a bias or without, and what follows it."""

    def __init__(self, sizes: list[tuple[int, int]]):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Linear(inner, columns, bias=number % 2 == 0) for number, (inner, columns) in enumerate(sizes)
        )

    def forward(self, *data: torch.Tensor) -> list[torch.Tensor]:
        return [torch.relu(layer(x)) for layer, x in zip(self.layers, data, strict=True)]


def assert_rounded_once(found: torch.Tensor, exact: torch.Tensor, terms: torch.Tensor) -> None:
    """Sums in f32 of exact products, rounded to bf16; `terms` has the sums of their sizes."""
    bound = exact.abs() * 2.0**-8 + terms * 2.0**-20 + 1e-30
    assert ((found.double() - exact).abs() <= bound).all()


def blocks(executable: pipeline.Executable) -> int:
    """How many products go in tiles."""
    reasons = [remark.reason for remark in executable.remarks if remark.pass_name == "tile-and-vectorize"]
    found = sum("by AMX" in reason for reason in reasons)
    assert bool(found) == ("llvm.x86.tdp" in executable.ir("llvm"))
    return found


@pytest.mark.parametrize("rows", ROWS)
def test_products_with_weights(rows: int) -> None:
    torch.manual_seed(rows)
    sizes = list(itertools.product(SUMS, COLUMNS))
    model = Products(sizes).bfloat16().requires_grad_(False)
    data = [torch.randn(rows, inner).bfloat16() for inner, _ in sizes]
    executable = pipeline.compile(model, tuple(data))
    for layer, x, found in zip(model.layers, data, executable(*data), strict=True):
        weight = layer.weight.double()
        bias = layer.bias.double() if layer.bias is not None else torch.zeros(len(weight), dtype=torch.float64)
        exact = x.double() @ weight.T + bias
        terms = x.double().abs() @ weight.abs().T + bias.abs()
        assert_rounded_once(found, exact.relu(), terms)
    assert bool(blocks(executable)) == (AMX and rows >= 4)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 32, 16), (40, 64, 48), (33, 96, 130), (128, 24, 64), (20, 33, 35)])
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_two_arguments(m: int, n: int, k: int, batch: tuple[int, ...], transposed: bool) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(*batch, m, k).bfloat16(), torch.randn(*batch, k, n).bfloat16()
    given = y.mT.contiguous() if transposed else y
    executable = pipeline.compile(lambda x, y: x @ (y.mT if transposed else y), (x, given))
    assert_rounded_once(executable(x, given), x.double() @ y.double(), x.double().abs() @ y.double().abs())
    whole = k % 2 == 0 and (n <= 32 or n % 32 == 0)
    assert bool(blocks(executable)) == (AMX and whole)


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 16, 21, 32, 64, 77])
def test_rows_of_a_number_that_is_not_known(rows: int) -> None:
    torch.manual_seed(0)
    model = nn.Linear(80, 64).bfloat16().requires_grad_(False)
    x = torch.randn(48, 80).bfloat16()
    executable = pipeline.compile(model, (x,), dynamic_shapes=({0: torch.export.Dim("rows", max=512)},))
    assert bool(blocks(executable)) == AMX
    x = torch.randn(rows, 80).bfloat16()
    exact = x.double() @ model.weight.double().T + model.bias.double()
    assert_rounded_once(executable(x), exact, x.double().abs() @ model.weight.double().abs().T + 1)


@pytest.mark.parametrize(
    ("channels", "filters", "size", "kernel", "stride", "padding", "dilation"),
    [
        (32, 32, 14, 3, 1, 1, 1),
        (64, 32, 7, 3, 1, 1, 1),
        (16, 64, 20, 3, 2, 1, 1),
        (48, 32, 33, 1, 1, 0, 1),
        (32, 96, 9, 1, 2, 0, 1),
        (32, 32, 19, 3, 1, 2, 2),
        (34, 24, 17, 5, 1, 2, 1),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_convolutions(
    channels: int, filters: int, size: int, kernel: int, stride: int, padding: int, dilation: int, last: bool
) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(channels, filters, kernel, stride, padding, dilation).bfloat16().requires_grad_(False)
    x = torch.randn(2, channels, size, size).bfloat16()
    x = x.to(memory_format=torch.channels_last) if last else x
    found = pipeline.compile(conv, (x,))(x)
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    weight, bias = conv.weight.double(), conv.bias.double()
    exact = nn.functional.conv2d(x.double(), weight, bias, **options)
    assert_rounded_once(found, exact, nn.functional.conv2d(x.double().abs(), weight.abs(), bias.abs(), **options))


def test_what_is_not_finite_stays_in_its_row() -> None:
    torch.manual_seed(0)
    model = nn.Linear(48, 32).bfloat16().requires_grad_(False)
    x = torch.randn(37, 48).bfloat16()
    x[5, 47], x[20, 0], x[36, 3] = torch.inf, torch.nan, -torch.inf
    found, expected = pipeline.compile(model, (x,))(x), model.double()(x.double())
    assert torch.equal(found.isfinite(), expected.isfinite())
    assert torch.equal(found.isnan(), expected.isnan())


@pytest.mark.parametrize("rows", [5, 16, 45])
@pytest.mark.parametrize("inner", [64, 80, 128])
def test_products_of_bytes(rows: int, inner: int) -> None:
    torch.manual_seed(0)
    model = nn.Linear(inner, 64).requires_grad_(False)
    x = torch.randn(rows, inner)
    options = {"weights": "int8", "activations": "int8"}
    executable = pipeline.compile(model, (x,), **options)
    assert bool(blocks(executable)) == AMX
    alone = pipeline.compile(model, (x[:1],), **options)
    assert not blocks(alone)
    assert torch.equal(executable(x), torch.cat([alone(row[None]) for row in x]))


def test_threads_share_blocks() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).bfloat16().requires_grad_(False)
    x = torch.randn(300, 256).bfloat16()
    one, two = (pipeline.compile(model, (x,), num_threads=threads) for threads in (1, 2))
    expected = one(x)
    for _ in range(50):
        assert torch.equal(two(x), expected)


@pytest.mark.parametrize(("batch", "queries", "keys"), [(1, 16, 16), (2, 40, 40), (1, 33, 64), (2, 70, 77)])
@pytest.mark.parametrize("form", ["plain", "causal", "mask", "bias", "grouped"])
def test_attention(batch: int, queries: int, keys: int, form: str) -> None:
    """As exact as scores that are not rounded: queries and values are, and weights once."""
    torch.manual_seed(0)
    heads = 2 if form == "grouped" else 4
    q = torch.randn(batch, 4, queries, 32).bfloat16()
    k, v = (torch.randn(batch, heads, keys, 32).bfloat16() for _ in range(2))
    options = {"is_causal": form == "causal", "enable_gqa": form == "grouped"}
    mask = {"mask": torch.rand(queries, keys) < 0.7, "bias": torch.randn(queries, keys).bfloat16()}.get(form)
    given = (q, k, v) if mask is None else (q, k, v, mask)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, mask, **options)

    found = pipeline.compile(attend, given)(*given)
    wide = [x.double() if x.is_floating_point() else x for x in given]
    assert (found.double() - attend(*wide)).abs().max() < 2.0**-7 * v.double().abs().max()
