"""Rows of several lengths, which lie one behind the other, as rows of one length, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces


@replaces(aten._jagged_to_padded_dense_forward.default)
def to_padded(values: Tensor, offsets: Sequence[Tensor], max_lengths: Sequence[Any], padding_value: float = 0) -> Any:
    """to_padded(values: [total, ..], [offsets]) → (values and a row of padding)[offset + place, or that row]."""
    if len(offsets) != 1:
        return NotImplemented
    first, place = offsets[0][:-1].unsqueeze(1), torch.arange(max_lengths[0])
    rows = torch.where(place < offsets[0].diff().unsqueeze(1), first + place, values.shape[0])
    return aten.constant_pad_nd.default(values, [0, 0] * (values.dim() - 1) + [0, 1], padding_value)[rows]


@replaces(aten._padded_dense_to_jagged_forward.default)
def to_jagged(dense: Tensor, offsets: Sequence[Tensor], total_L: Any = None) -> Any:
    """to_jagged(dense: [rows, longest, ..], [offsets]) → dense[row, place - offset of the row], or 0 behind its end."""
    if len(offsets) != 1 or total_L is None:
        return NotImplemented
    number = torch.arange(total_L)
    row = torch.searchsorted(offsets[0][1:].contiguous(), number, right=True)
    place = number - offsets[0][row]
    inside = (place < dense.shape[1]).reshape([-1] + [1] * (dense.dim() - 2))
    return torch.where(inside, dense[row, place.clamp(max=dense.shape[1] - 1)], 0)
