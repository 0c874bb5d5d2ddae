"""Branches and loops over tensors whose sizes are known at run time only, by torch.export and by torch.compile."""

from __future__ import annotations

import pytest
import torch
from cases import zero
from numerics import differences
from torch import nn
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_rows
from torch.export import Dim

import pipeline


class ScanOfCells(nn.Module):
    """One kernel, however long the sequence is."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, xs):
        def step(h, x):
            h = torch.tanh(self.linear(h) + x)
            return h, h * 2

        return scan(step, torch.zeros(3), xs)


class ScanOfRows(nn.Module):
    def forward(self, xs):
        def step(h, x):
            h = torch.tanh(h + x)
            return h, h.sum(-1)

        return scan(step, xs[0] * 0, xs)


class MapOfSums(nn.Module):
    def forward(self, xs):
        return map_rows(lambda x: x.cos() * x.sum(), xs)


class MapOfBranches(nn.Module):
    def forward(self, xs):
        return map_rows(lambda x: torch.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1, ()), xs)


class WhileOverRows(nn.Module):
    def forward(self, xs):
        def body(i, h):
            return i + 1, h * 0.5 + xs.index_select(0, i.reshape(1)).squeeze(0)

        return while_loop(lambda i, h: i < xs.shape[0], body, (zero(), xs[0] * 1))


class BranchOnASize(nn.Module):
    def forward(self, xs):
        return torch.cond(xs.shape[0] * 2 > 7, lambda x: x.cumsum(0), lambda x: x.flip(0) * 1, (xs,))


class Nested(nn.Module):
    def forward(self, xs):
        def inner(h):
            return torch.cond(xs.shape[0] > 3, lambda: h + 1, lambda: h * 3, ())

        def body(i, h):
            return i + 1, torch.cond(h.max() > 2, lambda: h * 0.5, lambda: inner(h), ())

        return while_loop(lambda i, h: i < 5, body, (zero(), xs * 1))[1]


MODELS = [ScanOfCells, ScanOfRows, MapOfSums, MapOfBranches, WhileOverRows, BranchOnASize, Nested]


@pytest.fixture(autouse=True)
def _inference():
    torch.manual_seed(0)
    torch._dynamo.reset()
    with torch.no_grad():
        yield


@pytest.mark.parametrize("kind", MODELS)
def test_export(kind):
    model = kind().eval()
    executable = pipeline.compile(model, (torch.randn(4, 3),), dynamic_shapes=({0: Dim.DYNAMIC},))
    for rows in (4, 1, 7):
        xs = torch.randn(rows, 3)
        assert not differences(executable(xs), model(xs)), rows
    if kind in (ScanOfCells, ScanOfRows, MapOfSums, MapOfBranches, WhileOverRows):
        assert [kernel.kind for kernel in executable.kernels].count("loop") == 1


@pytest.mark.parametrize("kind", MODELS[1:])
def test_all_sizes(kind):
    model = kind().eval()
    shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)
    executable = pipeline.compile(model, (torch.randn(4, 3),), dynamic_shapes=shapes)
    for shape in ((4, 3), (1, 1), (2, 5)):
        xs = torch.randn(shape)
        assert not differences(executable(xs), model(xs)), shape


@pytest.mark.parametrize("kind", MODELS)
def test_torch_compile(kind):
    model = kind().eval()
    compiled = torch.compile(model, backend="pipeline", dynamic=True, fullgraph=True)
    for rows in (4, 2, 7):
        xs = torch.randn(rows, 3)
        assert not differences(compiled(xs), model(xs)), rows
