"""Results that are no row-major tensors in eager mode: computed as they lie in memory, and seen in their own order.

permute(x)                          →  x, and the caller sees permute(x)
y, with its channels last in eager  →  permute(y), and the caller sees its channels in front again

A caller may rely on strides: on a view of what it permutes, for example, that is there without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._prims_common import is_contiguous_or_false

from pipeline.frontend.memory_order import memory_order

aten = torch.ops.aten

Permutation = tuple[int, ...]


def as_computed(value: fx.Node, outputs: Sequence[Any]) -> tuple[fx.Node, Permutation | None]:
    """(x, permutation) of a result that is permute(x), or lies so; itself where x is an output, too, or an argument.

    complex(permute(re), permute(im))  ->  complex(re, im), permuted
    """
    found = _taken_apart(value)
    if found is None or _is_row_major(value):
        return _as_in_memory(value)
    parts, permutation = found
    others = [_taken_apart(other) for other in outputs if isinstance(other, fx.Node) and other is not value]
    shared = {part for other in others if other is not None for part in other[0]} | set(outputs)
    if any(part.op != "call_function" or part in shared for part in parts):
        return value, None
    return (parts[0] if len(parts) == 1 else _complex(value, parts, permutation)), permutation


def _is_row_major(value: fx.Node) -> bool:
    """Whether eager mode has a row-major tensor; what it permutes has its channels last, for example."""
    return memory_order(value) is None and is_contiguous_or_false(value.meta["val"])


def _as_in_memory(value: fx.Node) -> tuple[fx.Node, Permutation | None]:
    order = memory_order(value)
    if order is None or value.meta["val"].is_complex():
        return value, None
    with value.graph.inserting_after(value):
        moved = value.graph.call_function(aten.permute.default, (value, order))
    moved.meta = {**value.meta, "val": value.meta["val"].permute(order)}
    return moved, tuple(order.index(dim) for dim in range(len(order)))


def _taken_apart(value: fx.Node) -> tuple[list[fx.Node], Permutation] | None:
    """What is permuted, and how: a tensor, or the parts of a complex one."""
    if value.target is aten.complex.default:
        found = [_permuted(part) for part in value.args if isinstance(part, fx.Node)]
        if len(found) != 2 or found[0][1] != found[1][1] or found[0][1] is None:
            return None
        return [part for part, _ in found], found[0][1]
    x, permutation = _permuted(value)
    return None if permutation is None else ([x], permutation)


def _permuted(value: fx.Node) -> tuple[fx.Node, Permutation | None]:
    """(x, permutation) for any number of permutes of x; (value, None) for none that changes the order."""
    order: Sequence[int] = ()
    while value.target is aten.permute.default:
        value, dims = value.args
        order = [dims[dim] % len(dims) for dim in order or range(len(dims))]
    return value, (None if list(order) == sorted(order) else tuple(order))


def _complex(value: fx.Node, parts: Sequence[fx.Node], permutation: Permutation) -> fx.Node:
    with value.graph.inserting_before(value):
        whole = value.graph.call_function(aten.complex.default, tuple(parts))
    inverse = [permutation.index(dim) for dim in range(len(permutation))]
    whole.meta = {**value.meta, "val": value.meta["val"].permute(inverse)}
    return whole
