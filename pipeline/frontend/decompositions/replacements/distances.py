"""Distances of all rows of two matrices, or of one, and their gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces
from pipeline.frontend.numbers.pairs import pairs


@replaces(aten._cdist_forward.default)
def cdist(a: Tensor, b: Tensor, p: float, mode: int | None) -> Tensor:
    """cdist(a, b, p) → the p-norms of the differences of all rows."""
    return _norms(a.unsqueeze(-2) - b.unsqueeze(-3), p)


@replaces(aten._cdist_backward.default)
def cdist_backward(gradient: Tensor, a: Tensor, b: Tensor, p: float, distances: Tensor) -> Tensor:
    """_cdist_backward(g: [.., m, n], a: [.., m, k], b: [.., n, k], p, distances) → sums over the rows of b, for a."""
    slopes = _slopes(a.unsqueeze(-2) - b.unsqueeze(-3), distances.unsqueeze(-1), p)
    return (slopes * gradient.unsqueeze(-1)).sum(-2)


@replaces(aten._pdist_forward.default)
def pdist(x: Tensor, p: float = 2) -> Tensor:
    """pdist(x, p) → the p-norms of x[i] - x[j] for all i < j."""
    first, second = pairs(x.size(0))
    return _norms(x.index_select(0, first) - x.index_select(0, second), p)


@replaces(aten._pdist_backward.default)
def pdist_backward(gradient: Tensor, x: Tensor, p: float, distances: Tensor) -> Tensor:
    """_pdist_backward(g: [pairs], x: [n, k], p, distances) → slopes, added to first rows, taken from second ones."""
    first, second = pairs(x.size(0))
    slopes = _slopes(x.index_select(0, first) - x.index_select(0, second), distances.unsqueeze(-1), p)
    moved = slopes * gradient.unsqueeze(-1)
    return torch.zeros_like(x).index_add(0, first, moved).index_add(0, second, -moved)


def _norms(difference: Tensor, p: float) -> Tensor:
    if p != math.inf:
        return torch.linalg.vector_norm(difference, p, -1)
    columns = difference.size(-1)
    has_columns = not isinstance(columns, int) or columns > 0
    return difference.abs().amax(-1) if has_columns else difference.sum(-1)


def _slopes(difference: Tensor, distance: Tensor, p: float) -> Tensor:
    """How each element of a difference changes its norm; rows that are equal do not."""
    if p == 0:
        return torch.zeros_like(difference)
    if p == 1:
        slope = difference.sign()
    elif p == 2:
        slope = difference / distance
    elif p == math.inf:
        slope = difference.sign() * (difference.abs() == distance)
    else:
        slope = difference.sign() * (difference.abs() / distance) ** (p - 1)
    if p not in (1, math.inf):
        slope = torch.where((distance == 0) | ((difference == 0) & (p < 1)), 0.0, slope)
    return slope
