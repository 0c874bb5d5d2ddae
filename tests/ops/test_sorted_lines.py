"""Whole lines sorted by digits, by insertion and by merging: the order of eager's stable sort, to the last place."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from tables import results_of

import pipeline

DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")

#: Lines of one and two elements, the last that are sorted by insertion, the first by digits, and long ones.
LENGTHS = (1, 2, 7, 24, 25, 257, 3001)


def line(length, kind):
    """Elements with many ties; of floats both zeros, infinities and NaN of both signs; of integers the ends."""
    generator = torch.manual_seed(length)
    x = torch.randint(-40, 40, (3, length), generator=generator)
    if not kind.is_floating_point:
        x = x.to(kind)
        if kind != torch.bool:
            ends = torch.iinfo(kind)
            x[:, ::11], x[:, 5::13] = ends.min, ends.max
        return x
    x = x.double() / 4
    x[:, ::9] *= -0.0
    x[:, 3::17], x[:, 4::19] = float("inf"), -float("inf")
    x = x.to(kind)
    x[:, 1::7] = float("nan")
    x[:, 2::23] = -x[:, 1:2] if length > 1 else x[:, 2::23]
    return x


def check(function, x):
    values, places = pipeline.compile(Function(function), (x,))(x)
    wanted, there = function(x)
    assert values.dtype == wanted.dtype
    assert torch.equal(places, there)
    torch.testing.assert_close(values, wanted, rtol=0, atol=0, equal_nan=True)
    if wanted.is_floating_point():
        is_zero = wanted == 0
        assert torch.equal(values.signbit()[is_zero], wanted.signbit()[is_zero])


@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_order_of_eager(dtype, descending):
    lines = [line(length, getattr(torch, dtype)) for length in LENGTHS]

    def every(*given):
        return tuple(tuple(torch.sort(x, dim=-1, descending=descending, stable=True)) for x in given)

    results = pipeline.compile(Function(every), tuple(lines))(*lines)
    for x, (values, places), (wanted, there) in zip(lines, results, every(*lines), strict=True):
        assert torch.equal(places, there), x.shape
        torch.testing.assert_close(values, wanted, rtol=0, atol=0, equal_nan=True)
        if x.is_floating_point():
            is_zero = wanted == 0
            assert torch.equal(values.signbit()[is_zero], wanted.signbit()[is_zero])


@pytest.mark.parametrize(
    ("shape", "dim"),
    [((0,), 0), ((3, 0), 1), ((0, 50), 1), ((), 0), ((50, 3), 0), ((2, 77, 3), 1), ((2, 3, 77), -1)],
    ids=str,
)
def test_shapes_and_dims(shape, dim):
    x = (torch.randn(shape, generator=torch.manual_seed(3)) * 3).round()
    check(lambda x: tuple(torch.sort(x, dim=dim, stable=True)), x)


def test_strides():
    x = (torch.randn(90, 6, generator=torch.manual_seed(3)) * 3).round()
    for each in (x.t(), x[::2, ::3].t(), x[:1].expand(40, 6), x.flip(0)):
        check(lambda x: tuple(torch.sort(x, dim=-1, descending=True, stable=True)), each)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "uint8"])
def test_digits_that_all_keys_have(dtype):
    """The first ones, those in the middle, the last ones, and all of them."""
    kind = getattr(torch, dtype)
    small = torch.randperm(300, generator=torch.manual_seed(3)) % 100
    lines = [small, small * 256, small - 50, small * 65537, torch.full_like(small, 7), torch.full_like(small, -1)]
    x = torch.stack(lines).to(kind)
    check(lambda x: tuple(torch.sort(x, dim=-1, stable=True)), x)
    check(lambda x: tuple(torch.sort(x, dim=-1, stable=True, descending=True)), x)


def test_threads_agree():
    x = torch.randn(64, 500, generator=torch.manual_seed(3))
    exe = pipeline.compile(Function(lambda x: torch.argsort(x, dim=-1, stable=True)), (x,), num_threads=2)
    assert torch.equal(exe(x), torch.argsort(x, dim=-1, stable=True))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64", "uint8"])
@pytest.mark.parametrize("k", [1, 33, 100, 300])
def test_many_of_the_first(dtype, k):
    x = line(300, getattr(torch, dtype))
    for largest in (True, False):
        values, places = pipeline.compile(Function(lambda x, largest=largest: x.topk(k, largest=largest)), (x,))(x)
        torch.testing.assert_close(values, x.topk(k, largest=largest)[0], rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(x.gather(1, places), values, rtol=0, atol=0, equal_nan=True)
        assert all(len(set(row.tolist())) == k for row in places)


def test_a_size_of_the_call():
    model = Function(lambda x: tuple(torch.sort(x, dim=-1, stable=True)))
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", min=2)
    x = torch.randn(4, 60)
    exe = pipeline.compile(model, (x,), dynamic_shapes=(({0: batch, 1: length},),))
    for shape in ((4, 60), (1, 301), (7, 25)):
        x = torch.randn(shape).round()
        for got, wanted in zip(exe(x), model(x), strict=True):
            assert torch.equal(got, wanted)


@pytest.mark.parametrize("largest", [True, False])
def test_the_first_in_any_order(largest):
    """`sorted=False`, as routers of experts ask: the same elements, each in its place."""
    x = torch.randperm(60, generator=torch.manual_seed(0)).reshape(3, 20).float()
    programs = {
        f"{count} along {dim}": (lambda x, k=count, d=dim: x.topk(k, d, largest, sorted=False), (x,))
        for count, dim in [(1, 1), (5, -1), (2, 0), (20, 1), (0, 1)]
    }
    for name, (values, places) in results_of(programs).items():
        function, (x,) = programs[name]
        dim = int(name.split()[-1])
        torch.testing.assert_close(values.sort(dim)[0], function(x)[0].sort(dim)[0], rtol=0, atol=0)
        assert torch.equal(x.gather(dim, places), values)
