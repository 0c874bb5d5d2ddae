"""Gradients of grids that affine maps make."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.affine_grids import pixel_places


def affine_grid_generator_backward(gradient: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """affine_grid_generator_backward(g: [N, *S, d]) → g's transpose @ the pixels' places: [N, d, d + 1].

    `size` is that of the images, N x C x S, with d sizes in S.
    """
    places = torch.meshgrid([pixel_places(count, align_corners, gradient) for count in size[2:]], indexing="ij")
    places = torch.stack([*reversed(places), torch.ones_like(places[0])], -1).flatten(0, -2)
    return gradient.flatten(1, -2).transpose(1, 2) @ places
