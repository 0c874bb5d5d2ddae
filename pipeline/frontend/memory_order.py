"""How the dims of a graph's tensors lie in memory in eager mode, by the strides of its fake tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

#: A size or a stride.
Number: TypeAlias = int | torch.SymInt


def memory_order(node: fx.Node) -> list[int] | None:
    """The dims of a dense tensor as they lie in memory, the outermost first; None if that is as they are counted."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    order = dense_order(value.shape, value.stride())
    long = [dim for dim in order or () if not _is_one(value.size(dim))]
    return None if long == sorted(long) else order


def dense_order(size: Sequence[Number], stride: Sequence[Number]) -> list[int] | None:
    """The dims of a tensor as they lie in memory, those of one element first; None where it has gaps or overlaps."""
    long = [dim for dim in range(len(size)) if not _is_one(size[dim])]
    strides = {dim: _usual(stride[dim]) for dim in long}
    if None in strides.values():
        return None
    order = sorted(long, key=lambda dim: -(strides[dim] or 0))
    expected: Number = 1
    for dim in reversed(order):
        if not statically_known_true(stride[dim] == expected):
            return None
        expected = expected * size[dim]
    return [*(dim for dim in range(len(size)) if dim not in order), *order]


def _is_one(size: Number) -> bool:
    return statically_known_true(size == 1)


def _usual(number: Number) -> int | None:
    """A number, or what it is for the sizes that the graph was captured with."""
    return number if isinstance(number, int) else number.node.hint
