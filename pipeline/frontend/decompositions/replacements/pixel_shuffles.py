"""Channels that become pixels, and back: torch's own way divides sizes by quotients of sizes, and guards each."""

from __future__ import annotations

from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.pixel_shuffle.default)
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """pixel_shuffle([.., c r r, h, w]) → [.., c, r, r, h, w] as [.., c, h r, w r]."""
    *outer, channels, height, width = x.shape
    r = upscale_factor
    few, rank = channels // (r * r), len(outer)
    parts = x.reshape(*outer, few, r, r, height, width)
    order = (*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2)
    return parts.permute(order).reshape(*outer, few, height * r, width * r)


@replaces(aten.pixel_unshuffle.default)
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """pixel_unshuffle([.., c, h r, w r]) → [.., c, h, r, w, r] as [.., c r r, h, w]."""
    *outer, channels, height, width = x.shape
    r = downscale_factor
    low, narrow, rank = height // r, width // r, len(outer)
    parts = x.reshape(*outer, channels, low, r, narrow, r)
    order = (*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3)
    return parts.permute(order).reshape(*outer, channels * r * r, low, narrow)
