"""Ops that compute where they read: counters, gathers of single elements, resized images; the same as eager's."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline
from pipeline.runtime.native.cpu_features import host_features
from pipeline.targets.cpu.isa import isa

CPUS = [cpu for cpu in ("x86-64", "x86-64-v3", "x86-64-v4") if set(isa(cpu).required) <= host_features()]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "bool"]


def missed(exe):
    return [one.reason for one in exe.remarks if one.pass_name == "tile-and-vectorize" and one.kind == "missed"]


def check(function, *args, vectors=True, **options):
    exe = pipeline.compile(Function(function), args, **options)
    torch.testing.assert_close(exe(*args), function(*args), rtol=0, atol=0, equal_nan=True)
    assert not vectors or not missed(exe)
    return exe


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 7, 16, 35])
def test_gather(dtype, columns):
    table = (torch.randn(9, columns) * 9).to(getattr(torch, dtype))
    check(lambda t, i: t.gather(1, i), table, torch.randint(columns, (9, 21)), vectors=columns > 1)
    check(lambda t, i: t.gather(0, i), table, torch.randint(9, (13, columns)), vectors=columns > 1)


@pytest.mark.parametrize("cpu", CPUS)
def test_gather_on_other_cpus(cpu):
    check(lambda t, i: t.gather(1, i) + 1, torch.randn(9, 35), torch.randint(35, (9, 21)), cpu=cpu)
    check(lambda t, i: t[i, i.flip(0)], torch.randn(9, 9), torch.randint(-9, 9, (37,)), cpu=cpu)


def test_gather_from_views():
    table, indices = torch.randn(35, 9, 4), torch.randint(9, (9, 21))
    check(lambda t, i: t.gather(1, i), table[:, :, 1].t()[:, :9], indices)
    check(lambda t, i: t[2:, 1:8, 3].gather(1, i.remainder(7)), table, indices, vectors=False)
    check(lambda t, i: t.t().gather(1, i), torch.randn(35, 9), indices, vectors=False)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_sizes_that_change(rows):
    count = torch.export.Dim("count", min=0, max=64)
    model, table = Function(lambda t, i: t.gather(0, i) * 2), torch.randn(30, 40)
    exe = pipeline.compile(model, (table, torch.zeros(3, 40).long()), dynamic_shapes=((None, {0: count}),))
    indices = torch.randint(30, (rows, 40))
    assert torch.equal(exe(table, indices), table.gather(0, indices) * 2)
    fixed = torch.randint(7, (3, 40))
    exe = pipeline.compile(model, (table, fixed), dynamic_shapes=(({0: count}, None),))
    assert torch.equal(exe(table[: 7 + rows], fixed), table.gather(0, fixed) * 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_flip(dtype):
    x = (torch.randn(3, 5, 37) * 9).to(getattr(torch, dtype))
    for dims in ([2], [0], [0, 1, 2]):
        check(lambda x, dims=dims: x.flip(dims), x)
    check(lambda x: x.flip(1), torch.randn(3, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "block"), [((10, 64, 3, 3), 32), ((7, 6, 2, 5), 3), ((1, 35, 1, 1), 35), ((0, 16, 3, 3), 16)], ids=str
)
def test_flips_that_are_transposed(shape, block, dtype):
    """As gradients read the weights of convolutions: each index is computed from the counters of several loops."""
    weights = (torch.randn(shape) * 9).to(getattr(torch, dtype))
    outs, ins, height, width = shape
    check(
        lambda w: w.flip(2, 3).view(outs, ins // block, block, height, width).permute(1, 3, 4, 0, 2).contiguous(),
        weights,
        vectors=block >= 16,
    )


def test_counters():
    check(lambda x: torch.where(torch.arange(37) % 3 == 0, x, 0.0), torch.randn(5, 37), vectors=False)
    check(lambda x: x * torch.arange(5)[:, None], torch.randn(5, 37))
    check(lambda i: F.one_hot(i, 21), torch.randint(21, (5, 7)))
    check(lambda x: torch.tril(x, 2), torch.randn(33, 35))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(14, 22), (7, 11), (3, 5), (1, 1), (13, 40)], ids=str)
def test_interpolate(mode, size):
    x = torch.randn(2, 3, 7, 11)
    exe = pipeline.compile(Function(lambda x: F.interpolate(x, size, mode=mode)), (x,))
    torch.testing.assert_close(exe(x), F.interpolate(x, size, mode=mode), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("align_corners", [False, True])
def test_interpolate_to_corners(align_corners):
    x = torch.randn(1, 2, 5, 6)

    def function(x):
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=align_corners)

    exe = pipeline.compile(Function(function), (x,))
    torch.testing.assert_close(exe(x), function(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bad", [9, -10, 2**40])
def test_an_index_out_of_range_is_an_error(bad):
    table, rows, columns = torch.randn(9, 9), torch.randint(9, (9,)), torch.randint(9, (17,))
    exe = pipeline.compile(Function(lambda t, i, j: t[i[:, None], j]), (table, rows, columns))
    assert torch.equal(exe(table, rows, columns), table[rows[:, None], columns])
    for number in (0, 1):
        given = [rows.clone(), columns.clone()]
        given[number][-1] = bad
        with pytest.raises(pipeline.PipelineError, match="out of range"):
            exe(table, *given)
    assert torch.equal(exe(table, rows, columns), table[rows[:, None], columns])


def test_indices_are_checked_in_their_own_loops():
    """The places of rows and of columns of a resized image: not once for each channel and element."""
    x = torch.randn(1, 8, 16, 16)
    exe = pipeline.compile(Function(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")), (x,))
    checks = [line for line in exe.ir("fused").splitlines() if "reduction" in line]
    assert checks
    assert not any('"reduction", "reduction"' in line for line in checks)
