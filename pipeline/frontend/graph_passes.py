"""Rewrites of the FX graph that the importer needs: one function each, run by `simplify` in order."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten = torch.ops.aten

_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)


def simplify(graph: fx.Graph) -> None:
    """Runs every rewrite on `graph`."""
    collapse_merged_dims(graph)
    graph.eliminate_dead_code()


def collapse_merged_dims(graph: fx.Graph) -> None:
    """view(x: [a, b, c] -> [a*b, c]) -> collapse(x, 0, 1), where a size is symbolic.

    Gets round a miscompile in torch-mlir (ConvertAtenViewOp casts the second dynamic dim to 1, so that memory is
    corrupted); remove when `view` of two merged dynamic dims lowers to tensor.collapse_shape.
    """
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in _VIEWS:
            continue
        source = node.args[0]
        merged = _merged_dims(list(source.meta["val"].shape), list(node.meta["val"].shape))
        if merged is None:
            continue
        with graph.inserting_before(node):
            collapse = graph.call_function(torch.ops.prims.collapse.default, (source, *merged))
        collapse.meta.update(node.meta)
        node.replace_all_uses_with(collapse)
        graph.erase_node(node)


def _merged_dims(before: list[Any], after: list[Any]) -> tuple[int, int] | None:
    """(first, last) if `after` is `before` with dims first..last merged into one and some size is symbolic."""
    extra = len(before) - len(after)
    if extra <= 0 or not any(isinstance(size, torch.SymInt) for size in before):
        return None
    for first in range(len(after)):
        last = first + extra
        head, tail = (
            zip(before[:first], after[:first], strict=True),
            zip(before[last + 1 :], after[first + 1 :], strict=True),
        )
        if not all(statically_known_true(a == b) for a, b in (*head, *tail)):
            continue
        if statically_known_true(math.prod(before[first : last + 1]) == after[first]):
            return first, last
    return None
