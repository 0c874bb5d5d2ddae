"""Transposes in registers, against PyTorch: every size around a tile's, several dtypes and CPUs, dynamic sizes."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import pipeline
from pipeline.runtime.native.cpu_features import host_features
from pipeline.targets.cpu.isa import isa

#: Whether the processor loads elements of 16 bits under a mask, as rows that are left of narrow elements are.
NARROW = isa("native").masked_bits <= 16

CPUS = [cpu for cpu in ("native", "x86-64-v3", "x86-64") if set(isa(cpu).required) <= host_features()]


class Permute(nn.Module):
    def __init__(self, *dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return x.permute(self.dims).contiguous()


class Scaled(nn.Module):
    def forward(self, x):
        return (x.transpose(-1, -2) * 2).contiguous()


def values(shape, dtype):
    torch.manual_seed(0)
    return torch.randint(-1000, 1000, shape).to(dtype)


def in_tiles(executable):
    """Whether the tiles of a kernel have as many rows as a vector has elements."""
    found = [re.search(r"tiles of (\d+) x 1 vectors of (\d+)", one.reason) for one in executable.remarks]
    return any(one is not None and one[1] == one[2] != "1" for one in found)


def check(model, x, **options):
    executable = pipeline.compile(model, (x,), **options)
    got, wanted = executable(x), model(x)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    assert torch.equal(got, wanted)
    return executable


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.float64, torch.int64])
def test_sizes_with_and_without_edges(dtype):
    for shape in ((16, 16), (33, 47), (64, 17)):
        assert in_tiles(check(Permute(1, 0), values(shape, dtype)))


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool, torch.uint8])
def test_small_elements_are_right_without_tiles(dtype):
    assert not in_tiles(check(Permute(1, 0), values((33, 47), dtype)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int16])
@pytest.mark.parametrize("cpu", CPUS)
def test_elements_of_16_bits(dtype, cpu):
    assert in_tiles(check(Permute(1, 0), values((64, 32), dtype), cpu=cpu))
    edges = in_tiles(check(Permute(1, 0), values((33, 47), dtype), cpu=cpu))
    assert edges == (isa(cpu).masked_bits == 8)  # they are not masked elsewhere


@pytest.mark.parametrize(
    ("shape", "tiles"), [((64, 32), True), ((33, 47), NARROW), ((48, 16), True), ((17, 32), True), ((7, 40), False)]
)
def test_a_transpose_that_rounds(shape, tiles):
    class Rounded(nn.Module):
        def forward(self, x):
            return x.t().contiguous().bfloat16()

    assert in_tiles(check(Rounded(), torch.randn(shape))) == tiles


@pytest.mark.parametrize("shape", [(0, 20), (20, 0), (1, 40), (40, 1), (15, 40), (40, 15)])
def test_tiles_that_are_not_full(shape):
    check(Permute(1, 0), values(shape, torch.float32), cpu="native")


@settings(max_examples=12, deadline=None, derandomize=True)
@given(shape=st.lists(st.integers(1, 21), min_size=3, max_size=4), seed=st.integers(0, 23))
def test_permutations(shape, seed):
    dims = torch.randperm(len(shape), generator=torch.Generator().manual_seed(seed)).tolist()
    check(Permute(*dims), values(shape, torch.float32), cpu="x86-64")


def test_sizes_known_at_run_time_only():
    rows, columns = torch.export.Dim("rows", min=2, max=500), torch.export.Dim("columns", min=2, max=500)
    executable = pipeline.compile(
        Permute(1, 0), (values((20, 40), torch.float32),), dynamic_shapes=({0: rows, 1: columns},)
    )
    assert in_tiles(executable)
    for shape in ((20, 40), (16, 16), (2, 3), (33, 2), (47, 65)):
        x = values(shape, torch.float32)
        assert torch.equal(executable(x), x.t())


def test_threads_share_bands():
    x = values((1000, 531), torch.float32)
    executable = check(Permute(1, 0), x, num_threads=2)
    executable.num_threads = 1
    assert torch.equal(executable(x), x.t())


def test_a_transpose_that_computes():
    assert in_tiles(check(Scaled(), values((33, 47), torch.float32)))


class Narrowed(nn.Module):
    """Computes in wide elements, and lays narrow ones the other way."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        return (x * 2).to(self.dtype).transpose(-1, -2).contiguous()


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int8, torch.bool], ids=str)
def test_narrow_results_with_edges(cpu, dtype):
    """What is left of a line is done one by one: no mask stores what is narrowed."""
    for shape in ((21, 50), (2, 33, 17), (15, 40), (70, 3)):
        check(Narrowed(dtype), values(shape, torch.float32) / 100, cpu=cpu)


def test_edges_of_narrow_results_leave_tiles():
    assert in_tiles(check(Narrowed(torch.bfloat16), values((21, 50), torch.float32))) == NARROW
    shapes = ({0: torch.export.Dim("rows", min=2, max=100), 1: torch.export.Dim("columns", min=2, max=100)},)
    executable = pipeline.compile(Narrowed(torch.bfloat16), (values((21, 50), torch.float32),), dynamic_shapes=shapes)
    for shape in ((2, 2), (17, 16), (33, 70), (100, 5)):
        x = values(shape, torch.float32)
        assert torch.equal(executable(x), Narrowed(torch.bfloat16)(x))
