"""How the dims of a graph's tensors lie in memory in eager mode, by the strides of its fake tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true


def memory_order(node: fx.Node) -> list[int] | None:
    """The dims of a dense tensor as they lie in memory, the outermost first; None if that is as they are counted."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    long = [dim for dim in range(value.dim()) if not statically_known_true(value.size(dim) == 1)]
    strides = {dim: _usual(value.stride(dim)) for dim in long}
    if None in strides.values():
        return None
    order = sorted(long, key=lambda dim: -(strides[dim] or 0))
    return None if order == long or not _is_dense(value, order) else _with_units(order, value.dim())


def _usual(number: int | torch.SymInt) -> int | None:
    """A number, or what it is for the sizes that the graph was captured with."""
    return number if isinstance(number, int) else number.node.hint


def _is_dense(value: torch.Tensor, order: Sequence[int]) -> bool:
    expected: int | torch.SymInt = 1
    for dim in reversed(order):
        if not statically_known_true(value.stride(dim) == expected):
            return False
        expected = expected * value.size(dim)
    return True


def _with_units(order: Sequence[int], rank: int) -> list[int]:
    """An order of some dims with the other ones, of size 1, in front."""
    return [*(dim for dim in range(rank) if dim not in order), *order]
