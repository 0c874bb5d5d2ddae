"""Gradients of bags of embeddings: of sums, means and maxima of rows, by the table and by the rows' weights.

Which bag a row is in, and how many are in a bag, is found again; forward keeps which rows are the greatest.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.embedding_bags import MAX, MEAN
from pipeline.frontend.decompositions.replacements.indexing import searchsorted


def embedding_bag_backward(
    gradient: Tensor,
    places: Tensor,
    offsets: Tensor,
    _bags: Tensor,
    _sizes: Tensor,
    greatest: Tensor,
    rows: int,
    scale_by_frequency: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """_embedding_bag_backward(g: [B, E], places: [N]) → zeros(rows, E).index_add(0, places, g[bags]), each one scaled.

    That of a maximum goes to the row that had it. Sparse gradients stay whole.
    """
    if sparse:
        return NotImplemented
    bags = _bags_of(places, offsets, gradient.size(0))
    counted = places != padding_idx
    scale = counted.to(gradient.dtype)
    if mode == MAX:
        sizes = torch.zeros(gradient.size(0), dtype=gradient.dtype).index_add(0, bags, scale)
        given = torch.where((sizes > 0).unsqueeze(1), gradient, 0)
        return torch.zeros(rows, gradient.size(1), dtype=gradient.dtype).scatter_add(0, greatest.long(), given)
    if mode == MEAN:
        sizes = torch.zeros(gradient.size(0), dtype=gradient.dtype).index_add(0, bags, scale)
        scale = scale / sizes.clamp(min=1).index_select(0, bags)
    if per_sample_weights is not None:
        scale = scale * per_sample_weights
    if scale_by_frequency:
        counts = torch.zeros(rows, dtype=gradient.dtype).index_add(0, places, torch.ones_like(scale))
        scale = scale / counts.index_select(0, places)
    scaled = gradient.index_select(0, bags) * scale.unsqueeze(1)
    return torch.zeros(rows, gradient.size(1), dtype=gradient.dtype).index_add(0, places, scaled)


def per_sample_weights_backward(
    gradient: Tensor,
    table: Tensor,
    places: Tensor,
    offsets: Tensor,
    _bags: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    """_embedding_bag_per_sample_weights_backward(g: [B, E], table) → sum(g[bags] * table[places], 1): [N]."""
    bags = _bags_of(places, offsets, gradient.size(0))
    sums = (gradient.index_select(0, bags) * table.index_select(0, places)).sum(1)
    return torch.where(places != padding_idx, sums, 0.0)


def _bags_of(places: Tensor, offsets: Tensor, count: int) -> Tensor:
    """The number of the bag that each place is in: [N]."""
    numbers = torch.arange(places.size(0), dtype=offsets.dtype, device=offsets.device)
    return searchsorted(offsets[:count], numbers, right=True) - 1
