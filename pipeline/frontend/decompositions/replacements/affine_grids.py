"""Grids that affine maps make of the pixels of an image."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.affine_grid_generator.default)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """affine_grid_generator(theta: [N, d, d + 1]) → theta[:, :, :d] @ (…, y, x) + theta[:, :, d] at each pixel.

    `size` is that of the images, N x C x S, with d sizes in S. torch's own makes a tensor of a number where a size is
    1, which graphs with gradients may not do.
    """
    dims = len(size) - 2
    *factors, grid = theta.reshape(-1, *[1] * dims, dims, dims + 1).unbind(-1)
    for dim, factor in zip(range(dims), reversed(factors), strict=True):
        grid = grid + pixel_places(size[2 + dim], align_corners, theta).reshape(-1, *[1] * (dims - dim)) * factor
    return grid


def pixel_places(count: int, align_corners: bool, like: Tensor) -> Tensor:
    """Where so many pixels lie between -1 and 1: the outer ones on the ends, or half a pixel inside; one is at 0."""
    if count == 1:
        return torch.zeros(1, dtype=like.dtype, device=like.device)
    ends = torch.linspace(-1, 1, count, dtype=like.dtype, device=like.device)
    return ends if align_corners else ends * ((count - 1) / count)
