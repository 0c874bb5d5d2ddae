"""How often values come up: histograms and the most frequent value."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, is_float, replaces


@replaces(aten.histc.default)
def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """histc(x, bins, min, max) → ones added at the bins of elements within the limits; of 16 bits in float32."""
    if bins < 1 or not is_float(x):
        return NotImplemented
    line = x.reshape(-1).float() if x.dtype.itemsize == 2 else x.reshape(-1)
    low, high = _limits(line, min, max)
    is_inside = (line >= low) & (line <= high)
    place = torch.where(is_inside, (line - low) * bins / (high - low), 0.0).to(torch.int64).clamp(0, bins - 1)
    counts = torch.zeros(bins + 1, dtype=torch.int64)
    place = torch.where(is_inside, place, bins)
    return aten.index_put.default(counts, [place], torch.ones_like(place), True).narrow(0, 0, bins).to(x.dtype)


def _limits(line: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """Those that are given; where they are equal those of the data, and one below and above where these are, too."""
    if low != high:
        torch._check(low < high, lambda: "torch.histc: max must be larger than min")
        first, last = (torch.full((), limit, dtype=line.dtype) for limit in (low, high))
        return first, last
    if line.size(0) == 0:
        first = last = torch.full((), low, dtype=line.dtype)
    else:
        first, last = line.amin(), line.amax()
    aten._assert_async.msg((first.abs() < torch.inf) & (last.abs() < torch.inf), "torch.histc: range is not finite")
    is_point = first == last
    return torch.where(is_point, first - 1, first), torch.where(is_point, last + 1, last)


@replaces(aten.mode.default)
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """mode(x, dim) → the value of the first of the longest runs of sort(x, dim), and the last place that has it."""
    values, places = torch.sort(x, dim=dim, stable=True)
    size = x.size(dim)
    is_first = values.narrow(dim, 1, size - 1) != values.narrow(dim, 0, size - 1)
    runs = torch.cat([torch.zeros_like(places.narrow(dim, 0, 1)), torch.cumsum(is_first.to(torch.int64), dim)], dim)
    counts = torch.zeros_like(places).scatter_add(dim, runs, torch.ones_like(places))
    longest = counts.argmax(dim, keepdim=True)
    end = torch.cumsum(counts, dim).gather(dim, longest) - 1
    result = values.gather(dim, end), places.gather(dim, end)
    return result if keepdim else (result[0].squeeze(dim), result[1].squeeze(dim))
