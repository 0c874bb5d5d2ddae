"""Ops of torch in terms of others: those that torch-mlir lacks or gets wrong, so that they never reach it.

Each function replaces one overload while torch.export runs its decompositions, opens with before → after, and returns
NotImplemented where the op can stay as it is. What is rewritten after that, on the graph, is in `graph_passes`.
"""

from __future__ import annotations

from pipeline.frontend.decompositions.replacements import (
    adaptive_pooling,
    affine_grids,
    arithmetic,
    bit_views,
    comparisons,
    frequencies,
    grid_samples,
    indexing,
    interpolation,
    jagged,
    log_gamma,
    losses,
    memory_writes,
    order,
    pixel_shuffles,
    pooling,
    random,
    reductions,
    samples,
    selection,
    separable,
    shapes,
    signs,
    slices,
    special_functions,
    strided,
    symbolic_shapes,
    systems,
    windows,
)
from pipeline.frontend.decompositions.replacements.table import REPLACEMENTS

__all__ = [
    "REPLACEMENTS",
    "adaptive_pooling",
    "affine_grids",
    "arithmetic",
    "bit_views",
    "comparisons",
    "frequencies",
    "grid_samples",
    "special_functions",
    "indexing",
    "interpolation",
    "jagged",
    "log_gamma",
    "losses",
    "memory_writes",
    "order",
    "pixel_shuffles",
    "pooling",
    "random",
    "reductions",
    "samples",
    "selection",
    "separable",
    "shapes",
    "signs",
    "slices",
    "strided",
    "symbolic_shapes",
    "systems",
    "windows",
]
