"""Random graphs of elementwise ops, moves and reductions give what eager gives, with fuse-elementwise and without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import pipeline

#: Ops that round as eager's do, whatever is fused: + - * and moves.
UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "negate": torch.neg,
    "double": lambda x: x * 2,
    "transpose": lambda x: x.mT,
    "row_max": lambda x: x.amax(-1, keepdim=True) if x.shape[-1] else x,
    "column_max": lambda x: x.amax(-2, keepdim=True) if x.shape[-2] else x,
    "copies": lambda x: x[..., :1].expand(*x.shape[:-1], 3) if x.shape[-1] else x,
    "number": lambda x: torch.full_like(x, 3) - x,
    "square": lambda x: x * x,
}
BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "max": torch.maximum,
}
INTEGER_ONLY = {"row_sum": lambda x: x.sum(-1, keepdim=True, dtype=x.dtype)}


@dataclass(frozen=True)
class Graph:
    """The steps of a program on two inputs: each an op and the numbers of earlier values, the latest ones returned."""

    steps: tuple[tuple[str, int, int], ...]
    shapes: tuple[tuple[int, int], tuple[int, int]]
    dtype: torch.dtype

    def inputs(self) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        return [(torch.randn(shape, generator=generator) * 4).to(self.dtype) for shape in self.shapes]


class Program(nn.Module):
    """A graph as a module; a binary op whose operands do not broadcast takes its first one twice."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        values = list(inputs)
        for name, left, right in self.graph.steps:
            x, y = values[left % len(values)], values[right % len(values)]
            unary = (UNARY | INTEGER_ONLY).get(name)
            values.append(unary(x) if unary else BINARY[name](x, y if _broadcast(x, y) else x))
        return [values[-1], values[-2]]


def _broadcast(x: torch.Tensor, y: torch.Tensor) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(x.shape, y.shape, strict=True))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    dtype = draw(st.sampled_from([torch.float32, torch.float64, torch.int32, torch.int64]))
    names = [*UNARY, *BINARY, *BINARY] + ([] if dtype.is_floating_point else list(INTEGER_ONLY))
    place = st.integers(0, 7)
    steps = draw(st.lists(st.tuples(st.sampled_from(names), place, place), min_size=2, max_size=7))
    rows, columns = draw(st.sampled_from([0, 1, 2, 5])), draw(st.sampled_from([0, 1, 3, 17]))
    other = draw(st.sampled_from([(rows, columns), (1, columns), (rows, 1)]))
    return Graph(tuple(steps), ((rows, columns), other), dtype)


@settings(max_examples=24, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_fusion_changes_no_bit(graph: Graph) -> None:
    inputs = graph.inputs()
    model = Program(graph)
    expected = model(*inputs)
    for disable in ([], ["fuse-elementwise"]):
        results = pipeline.compile(model, tuple(inputs), disable=disable)(*inputs)
        for result, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(result, wanted, rtol=0, atol=0, equal_nan=True)


class Rows(nn.Module):
    """The sum of a row that is the same number again and again: only the broadcast says how often."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, None].expand(4, 8).sum(1)


def test_a_reduction_of_a_broadcast_keeps_its_bound() -> None:
    x = torch.randn(4)
    torch.testing.assert_close(pipeline.compile(Rows(), (x,))(x), Rows()(x))


class Chain(nn.Module):
    """Each value is read by two operands of the next op."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(24):
            x = x * 0.1 + x * x
        return x


def test_a_value_that_is_read_twice_is_computed_once() -> None:
    x = torch.rand(64) / 2
    executable = pipeline.compile(Chain(), (x,))
    torch.testing.assert_close(executable(x), Chain()(x))
    assert executable.ir("fused").count("arith.mulf") == 48
