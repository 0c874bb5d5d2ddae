"""Ops that hand on the elements of a tensor: which there are, and the groups of dims that they split and merge."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.mlir import ir

#: Ops that split and merge dims.
RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")

#: Ops with one operand that hand on its elements in their order.
RESHAPES_AND_CASTS = (*RESHAPES, "tensor.cast")

#: All ops that hand on elements in their order; a tensor.reshape takes the shape as an operand.
ALL_RESHAPES = (*RESHAPES_AND_CASTS, "tensor.reshape")

#: Ops that hand on elements of their first operand.
TENSOR_VIEWS = (*RESHAPES_AND_CASTS, "tensor.extract_slice")


def reassociation(op: ir.Operation) -> list[list[int]]:
    """The groups of dims that a tensor.expand_shape or tensor.collapse_shape splits or merges."""
    return [[ir.IntegerAttr(dim).value for dim in group] for group in ir.ArrayAttr(op.attributes["reassociation"])]


def unit_groups(used: Sequence[int], rank: int) -> list[list[int]]:
    """The dims of `rank` that each of the `used` ones becomes; those of size 1 go with the one in front of them."""
    starts = [0, *used[1:], rank]
    return [list(range(start, end)) for start, end in zip(starts, starts[1:], strict=False)] if used else []
