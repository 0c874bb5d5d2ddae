"""Vectors of bools, integers of 8 and 16 bits and 16-bit floats against eager: odd sizes, casts, edges, every ISA."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline
from pipeline.runtime.native.cpu_features import host_features
from pipeline.targets.cpu.isa import isa

CPUS = [cpu for cpu in ("native", "x86-64", "x86-64-v3", "x86-64-v4") if set(isa(cpu).required) <= host_features()]
SHAPES = ((3, 7), (1, 1), (0, 3), (7, 130))
BYTES = (torch.int8, torch.uint8)
HALVES = (torch.float16, torch.bfloat16)
ALL = (
    torch.bool,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    *HALVES,
    torch.float32,
    torch.float64,
)


def check(function, inputs, cpu="native", **tolerance):
    """Compiles a function that returns a list, and compares each result with eager's."""
    results = pipeline.compile(Function(function), tuple(inputs), cpu=cpu)(*inputs)
    for number, (result, wanted) in enumerate(zip(results, function(*inputs), strict=True)):
        torch.testing.assert_close(
            result,
            wanted,
            equal_nan=True,
            msg=lambda text, n=number: f"result {n}: {text}",
            **tolerance or {"rtol": 0, "atol": 0},
        )


def tensors(kind):
    torch.manual_seed(0)
    if kind == torch.bool:
        return [torch.rand(shape) > 0.5 for shape in SHAPES]
    if kind.is_floating_point:
        return [torch.randn(shape).to(kind) for shape in SHAPES]
    info = torch.iinfo(kind)
    return [torch.randint(max(info.min, -(2**40)), min(info.max, 2**40), shape).to(kind) for shape in SHAPES]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("kind", HALVES, ids=str)
def test_arithmetic_of_16_bits_rounds_after_each_op(kind, cpu):
    def chains(*xs):
        return [y for x in xs for y in ((x * 2 + 1) / 3 - x, x / (x * x + 1), F.relu(x), torch.where(x > 0, x, x * 2))]

    check(chains, tensors(kind), cpu)


@pytest.mark.parametrize("kind", HALVES, ids=str)
def test_functions_of_16_bits(kind):
    def functions(*xs):
        return [y for x in xs for y in (x.exp(), x.tanh(), x.sin(), x.sigmoid(), x.abs().sqrt(), x.abs().log())]

    ulp = torch.finfo(kind).eps
    check(functions, tensors(kind), rtol=ulp, atol=ulp / 8)


@pytest.mark.parametrize("kind", HALVES, ids=str)
def test_special_values_of_16_bits(kind):
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    x = bits.view(kind)
    check(lambda x: [x + 0, x * 1.5, x.float(), -x, x.abs(), x > 1, x.double() * 3], [x])
    check(lambda x: [x.float().to(torch.bfloat16), x.float().half(), (x.double() / 3).to(x.dtype)], [x])


def test_every_rounding_to_16_bits():
    """All patterns of the lower half of an f32, for a few upper ones, infinity and NaN among them."""
    upper = torch.tensor([0x0000, 0x0001, 0x007F, 0x3F80, 0x3F81, 0x477F, 0x7F7F, 0x7F80, 0x7FFF], dtype=torch.int32)
    bits = (upper[:, None] << 16) + torch.arange(0, 2**16, 7, dtype=torch.int32)
    x = torch.cat([bits.view(torch.float32), -bits.view(torch.float32)])
    check(lambda x: [x.to(torch.bfloat16), x.half()], [x])


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("kind", [*BYTES, torch.int16], ids=str)
def test_arithmetic_of_integers(kind, cpu):
    def chains(*xs):
        return [y for x in xs for y in ((x + x) * 3, x & 6, x >> 1, x < 5, torch.where(x > 3, x, x - 1), x.sum(-1))]

    check(chains, tensors(kind), cpu)


def test_division_of_bytes():
    check(lambda *xs: [x // 3 for x in xs] + [x % 7 for x in xs], tensors(torch.uint8))


@pytest.mark.parametrize("cpu", CPUS)
def test_bools(cpu):
    def functions(*masks):
        rows = [y for m in masks for y in (~m | (m ^ m.flip(0)), m & ~m, m.any(-1), m.all(-1), m.all(), m.sum(-1))]
        return rows + [torch.where(m, 1.5, -2.0) for m in masks]

    check(functions, tensors(torch.bool), cpu)


def test_masks_of_16_bit_floats():
    values, masks = tensors(torch.float16), tensors(torch.bool)
    count = len(values)

    def functions(*both):
        return [x.masked_fill(mask, -1e4) for x, mask in zip(both[:count], both[count:], strict=True)]

    check(functions, [*values, *masks])


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("kind", ALL, ids=str)
def test_casts(kind, cpu):
    """Numbers that fit into every type, in positions that differ."""
    shapes = ((3, 7), (2, 130))
    inputs = [(torch.arange(rows * columns) % 100).reshape(rows, columns).to(kind) for rows, columns in shapes]
    check(lambda *xs: [x.to(other) for x in xs for other in ALL if other != kind], inputs, cpu)


@pytest.mark.parametrize("cpu", CPUS)
def test_floats_beyond_127_as_bytes(cpu):
    x = torch.linspace(-128, 255, 1000)
    check(lambda x: [x.to(torch.uint8), x.to(torch.int8), x.to(torch.int16), (x * 100).to(torch.int16)], [x], cpu)


@pytest.mark.parametrize("kind", HALVES, ids=str)
def test_sums_of_16_bits_are_added_up_in_f32(kind):
    x = torch.ones(3, 3000, dtype=kind)

    def sums(x):
        return [
            x.sum(-1),
            x.sum(),
            x.mean(-1),
            x.cumsum(-1),
            x.norm(dim=-1),
            x.amax(-1),
            x.sum(0),
            x.sum(-1, dtype=torch.float32),
        ]

    check(sums, [x], rtol=0.01, atol=0)
    check(
        lambda x: [F.avg_pool2d(x, 16), F.adaptive_avg_pool2d(x, 1)],
        [torch.randn(1, 2, 64, 64).to(kind)],
        rtol=0.01,
        atol=0.001,
    )


@pytest.mark.parametrize("kind", HALVES, ids=str)
def test_products_of_matrices_of_16_bits(kind):
    torch.manual_seed(0)
    pairs = [torch.randn(size).to(kind) for size in ((33, 70), (70, 40), (5, 3), (3, 1), (17, 130), (130, 65))]

    def products(*matrices):
        return [left @ right for left, right in zip(matrices[::2], matrices[1::2], strict=True)]

    check(products, pairs, rtol=torch.finfo(kind).eps, atol=0.01)


def test_dynamic_sizes():
    dim = torch.export.Dim("n", max=1000)
    x = torch.randn(3, 50).to(torch.bfloat16)

    def function(x):
        return (x * 3 + 1), x > 0, x.float().sum(-1), (x > 0).sum(-1)

    executable = pipeline.compile(Function(function), (x,), dynamic_shapes=(({1: dim},),))
    for size in (50, 2, 16, 65, 700):
        x = torch.randn(3, size).to(torch.bfloat16)
        for result, wanted in zip(executable(x), function(x), strict=True):
            torch.testing.assert_close(result, wanted, rtol=1e-5, atol=1e-5)


def test_they_become_vectors():
    inputs = (
        torch.randn(100).half(),
        torch.randn(100).to(torch.bfloat16),
        torch.rand(100) > 0.5,
        torch.ones(100).byte(),
    )
    executable = pipeline.compile(Function(lambda a, b, c, d: (a + a, b * b, ~c, d * 2)), inputs)
    kinds = [remark.kind for remark in executable.remarks if remark.pass_name == "tile-and-vectorize"]
    assert kinds == ["passed"] * 4
