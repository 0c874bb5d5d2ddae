"""Sliding windows, which torch and torch-mlir gather with tables of indices."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces
from pipeline.frontend.views.windows_op import windows


@replaces(aten.unfold.default)
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """unfold(x, dim, size, step) → windows(x), of tensors with dims and windows with elements."""
    if x.dim() == 0 or size == 0:
        return NotImplemented
    return windows(x, dimension % x.dim(), size, step)


@replaces(aten.im2col.default)
def im2col(x: Tensor, kernel_size: list[int], dilation: list[int], padding: list[int], stride: list[int]) -> Tensor:
    """im2col([.., c, h, w]) → windows along both dims of the padded x, as [.., c * kernel, windows]."""
    (rows, columns), (before, beside) = kernel_size, padding
    padded = torch.nn.functional.pad(x, (beside, beside, before, before))
    for dim, kernel, spread, step in zip((-2, -1), kernel_size, dilation, stride, strict=True):
        padded = padded.unfold(dim + x.dim(), spread * (kernel - 1) + 1, step)[..., ::spread]
    *batch, channels, height, width, _, _ = padded.shape
    return padded.movedim((-2, -1), (-4, -3)).reshape(*batch, channels * rows * columns, height * width)
