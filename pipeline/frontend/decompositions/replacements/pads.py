"""Gradients of pads that repeat the edge."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(
    aten.replication_pad1d_backward.default,
    aten.replication_pad2d_backward.default,
    aten.replication_pad3d_backward.default,
)
def replication_pad_backward(gradient: Tensor, x: Tensor, padding: list[Any]) -> Tensor:
    """replication_pad1d_backward(g, x, [l, r]) → g[l:-r], to whose ends the sums of g[:l] and g[-r:] are added.

    Likewise along each dim. Pads below zero crop, so that zeros are added.
    """
    if not all(isinstance(count, int) for count in padding):
        return NotImplemented
    for number in range(len(padding) // 2):
        gradient = _gradient_along(gradient, x.dim() - 1 - number, x, padding[2 * number], padding[2 * number + 1])
    return gradient


def _gradient_along(gradient: Tensor, dim: int, x: Tensor, before: int, behind: int) -> Tensor:
    size, inner = x.size(dim), [0, 0] * (x.dim() - 1 - dim)
    result = aten.constant_pad_nd.default(gradient, [*inner, -before, -behind])
    if before > 0:
        edge = gradient.narrow(dim, 0, before).sum(dim, keepdim=True)
        result = result + aten.constant_pad_nd.default(edge, [*inner, 0, size - 1])
    if behind > 0:
        edge = gradient.narrow(dim, gradient.size(dim) - behind, behind).sum(dim, keepdim=True)
        result = result + aten.constant_pad_nd.default(edge, [*inner, size - 1, 0])
    return result
