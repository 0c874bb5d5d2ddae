"""Writes to slices whose ends are sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import SymInt, Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.slice_scatter.default)
def slice_scatter(
    x: Tensor, part: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int | SymInt = 1
) -> Tensor:
    """slice_scatter(x, part, dim, -n) → slice_scatter(x, part, dim, size - n), for an n that is not known.

    torch-mlir counts from the end for numbers that it knows. `required_sizes` has each call count from the same end.
    """
    if not any(isinstance(index, SymInt) and counts_from_the_end(index) for index in (start, end)):
        return NotImplemented
    size = x.shape[dim]
    start, end = (
        torch.sym_max(index + size, 0) if index is not None and counts_from_the_end(index) else index
        for index in (start, end)
    )
    return aten.slice_scatter.default(x, part, dim, start, end, step)


def counts_from_the_end(index: int | SymInt) -> bool:
    """Whether an index is below zero; one that is not known is what it was in capture, and not if it was unknown."""
    hint = index.node.hint if isinstance(index, SymInt) else index
    return hint is not None and hint < 0
