"""Rows that loops read and write, at places that are in range by the way the loop counts.

`row` and `with_row` are select and select_scatter as ops of our own, so that neither torch's decompositions nor our
checks of indices see them before the graph is imported.
"""

from __future__ import annotations

import torch
from torch import Tensor, fx

_ROW = "(Tensor x, int dim, SymInt place) -> Tensor"
_WITH_ROW = "(Tensor x, Tensor row, int dim, SymInt place) -> Tensor"


@torch.library.custom_op("pipeline::row", mutates_args=(), schema=_ROW)
def row(x: Tensor, dim: int, place: int) -> Tensor:
    """x[place] along a dim, which the result does not have."""
    return x.select(dim, place).clone()


@row.register_fake
def _(x: Tensor, dim: int, place: int) -> Tensor:
    return x.new_empty([size for number, size in enumerate(x.shape) if number != dim])


@torch.library.custom_op("pipeline::with_row", mutates_args=(), schema=_WITH_ROW)
def with_row(x: Tensor, row: Tensor, dim: int, place: int) -> Tensor:
    """x with another row in x[place] along a dim."""
    return x.select_scatter(row, dim, place)


@with_row.register_fake
def _(x: Tensor, row: Tensor, dim: int, place: int) -> Tensor:
    return torch.empty_like(x)


_ATEN = {
    torch.ops.pipeline.row.default: torch.ops.aten.select.int,
    torch.ops.pipeline.with_row.default: torch.ops.aten.select_scatter.default,
}


def name_rows(graph: fx.Graph) -> None:
    """row(x, dim, n)  →  select(x, dim, n), likewise with_row: no check of the number, and no gather, from here on."""
    for node in graph.nodes:
        if node.op == "call_function":
            node.target = _ATEN.get(node.target, node.target)
