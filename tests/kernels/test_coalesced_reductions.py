"""Reductions along several dims that follow each other in memory, which are one dim: shapes, strides and dtypes."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from torch.nn import functional

import pipeline

SHAPES = ((2, 6, 7, 7), (1, 160, 8, 8), (3, 5, 1, 9), (4, 1, 1, 1), (2, 3, 17, 17), (0, 3, 5, 5), (2, 40, 3, 3))

STRIDED = {
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "parts of rows": lambda x: torch.cat([x, x], -1)[..., : x.shape[-1]],
    "every other channel": lambda x: torch.cat([x, x], 1)[:, ::2],
    "transposed": lambda x: x.transpose(1, 3).contiguous().transpose(1, 3),
}


def reductions(x):
    doubled = x * 2
    dims = (1, 2, 3)
    count = max(1, x.shape[0])
    return (
        x.sum(dims),
        x.mean((2, 3)),
        x.sum((0, 2, 3)),
        doubled.sum(dims),
        doubled,
        functional.gelu(x).sum((2, 3)),
        functional.layer_norm(x, x.shape[1:]),
        functional.layer_norm(x + 1, x.shape[2:]),
        x.reshape(count, -1).sum(),
        (x * x).sum((1, 2)),
    )


def check(x):
    results = pipeline.compile(Function(reductions), (x,))(x)
    half = x.dtype != torch.float32
    wanted = reductions(x.double())
    for number, (result, expected) in enumerate(zip(results, wanted, strict=True)):
        tolerance = {"rtol": 2e-2, "atol": 2e-1} if half else {"rtol": 1e-4, "atol": 1e-3}
        torch.testing.assert_close(result.double(), expected, **tolerance, msg=lambda text, n=number: f"{n}: {text}")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape, dtype):
    check(torch.randn(shape, generator=torch.manual_seed(2)).to(getattr(torch, dtype)))


@pytest.mark.parametrize("name", STRIDED)
def test_strides(name):
    check(STRIDED[name](torch.randn(2, 6, 7, 9, generator=torch.manual_seed(2))))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_group_norms(dtype):
    kind = getattr(torch, dtype)

    def norms(*given):
        return tuple(functional.group_norm(x, groups) for x, groups in zip(given, (2, 8, 4, 1), strict=True))

    shapes = ((2, 12, 7, 7), (1, 80, 8, 8), (3, 8, 5), (2, 4, 1, 1, 9))
    given = tuple(torch.randn(shape, generator=torch.manual_seed(5)).to(kind) for shape in shapes)
    results = pipeline.compile(Function(norms), given)(*given)
    tolerance = 1e-4 if kind == torch.float32 else 4e-2
    for result, expected in zip(results, norms(*(x.double() for x in given)), strict=True):
        torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)


def test_sizes_of_the_call():
    batch, height = torch.export.Dim("batch"), torch.export.Dim("height", min=2)
    model = Function(lambda x: (x.sum((1, 2, 3)), x.mean((2, 3)), functional.layer_norm(x, x.shape[2:])))
    x = torch.randn(3, 5, 6, 7)
    exe = pipeline.compile(model, (x,), dynamic_shapes=(({0: batch, 2: height},),))
    for shape in ((3, 5, 6, 7), (1, 5, 11, 7), (4, 5, 2, 7)):
        x = torch.randn(shape)
        for result, expected in zip(exe(x), model(x), strict=True):
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "uint8", "bool"])
def test_reductions_that_come_one_dim_at_a_time(dtype):
    kind = getattr(torch, dtype)

    def nested(x):
        # torch has no largest of bools along several dims in all its versions
        extremes = () if kind == torch.bool else (x.amax((1, 2, 3)), x.amin((2, 3)), x.amax((0, 1)), x.amax((0, 2, 3)))
        return (*extremes, (x != 0).any(3).any(2), (x != 0).all(3).all(2).all(1))

    for shape in ((2, 6, 7, 7), (1, 160, 8, 8), (3, 1, 5, 1), (1, 1, 1, 1)):
        x = (torch.randn(shape, generator=torch.manual_seed(2)) * 3).to(kind)
        exe = pipeline.compile(Function(nested), (x,))
        for result, expected in zip(exe(x), nested(x), strict=True):
            assert torch.equal(result, expected), shape
        merged = [one for one in exe.remarks if one.pass_name == "merge-nested-reductions"]
        assert merged or min(shape[2:]) == 1, shape


def test_largest_of_all_with_nan_and_infinities():
    x = torch.randn(3, 5, 7)
    exe = pipeline.compile(Function(lambda x: (x.amax((1, 2)), x.amin((1, 2)), x.amax((0, 1, 2)))), (x,))
    x[0, 2, 3], x[1, 0, 0], x[2, 4, 6] = float("nan"), float("inf"), float("-inf")
    for result, expected in zip(exe(x), (x.amax((1, 2)), x.amin((1, 2)), x.amax((0, 1, 2))), strict=True):
        torch.testing.assert_close(result, expected, equal_nan=True, rtol=0, atol=0)
