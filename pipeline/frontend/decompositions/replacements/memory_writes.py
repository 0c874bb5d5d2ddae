"""Writes to tensors by places in memory, as aot_autograd has them where inputs share memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten.as_strided_scatter.default)
def as_strided_scatter(x: Tensor, src: Tensor, size: list[int], stride: list[int], offset: int | None = None) -> Any:
    """as_strided_scatter(x, src)  →  scatter(flat x, the places of src in it, flat src), where x is row-major."""
    if not x.is_contiguous():
        return NotImplemented
    places = torch.full([1] * len(size), offset or 0, device=x.device)
    for dim, (count, step) in enumerate(zip(size, stride, strict=True)):
        places = places + (torch.arange(count, device=x.device) * step).view([-1] + [1] * (len(size) - dim - 1))
    return x.reshape(-1).scatter(0, places.reshape(-1), src.reshape(-1)).view(x.shape)
