"""Groups of dims that reshapes split and merge."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.mlir import ir


def reassociation(op: ir.Operation) -> list[list[int]]:
    """The groups of dims that a tensor.expand_shape or tensor.collapse_shape splits or merges."""
    return [[ir.IntegerAttr(dim).value for dim in group] for group in ir.ArrayAttr(op.attributes["reassociation"])]


def unit_groups(used: Sequence[int], rank: int) -> list[list[int]]:
    """The dims of `rank` that each of the `used` ones becomes; those of size 1 go with the one in front of them."""
    starts = [0, *used[1:], rank]
    return [list(range(start, end)) for start, end in zip(starts, starts[1:], strict=False)] if used else []
