"""Sorting, and what is found by order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor

from pipeline.frontend.decompositions.replacements.table import Decomposition, aten, in_float32, is_float, replaces
from pipeline.frontend.numbers.assumed_sizes import require


@replaces(aten.sort.stable)
def sort_stable(x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """sort(x, stable=..) → sort(x), which is always stable here."""
    return aten.sort.default(x, dim, descending)


@replaces(aten.sort.default)
def sort(x: Tensor, dim: int = -1, descending: bool = False) -> Any:
    """sort(x: bool) → sort(x as integers) as bools."""
    if x.dtype != torch.bool:
        return NotImplemented
    values, indices = aten.sort.default(x.to(torch.int32), dim, descending)
    return values.to(torch.bool), indices


@replaces(aten.topk.default)
def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """topk(x, sorted=False) → topk(x), in whose order they may come as in any other."""
    return NotImplemented if sorted else aten.topk.default(x, k, dim, largest)


@replaces(aten.kthvalue.default)
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """kthvalue(x, k) → element k - 1 of sort(x)."""
    values, indices = torch.sort(x, dim=dim)
    kth = (part.select(dim, k - 1) for part in (values, indices))
    first, second = (part.unsqueeze(dim) if keepdim else part for part in kth)
    return first, second


@replaces(aten.median.default)
def median(x: Tensor) -> Tensor:
    """median(x) → the middle element of sort(x), the lower of two; NaN if there is one."""
    line = x.flatten()
    if isinstance(line.numel(), int) and not line.numel():
        return x.new_full((), math.nan) if is_float(x) else NotImplemented
    middle = torch.sort(line)[0].select(0, (line.numel() - 1) // 2)
    return torch.where((line != line).any(), torch.full_like(middle, math.nan), middle) if is_float(x) else middle


@replaces(aten.median.dim)
def median_dim(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """median(x, dim) → the middle element of sort(x, dim), the lower of two; the first NaN if there is one."""
    values, places = (part.select(dim, (x.size(dim) - 1) // 2) for part in torch.sort(x, dim=dim))
    if is_float(x):
        nan = x != x
        has_nan = nan.any(dim)
        values = torch.where(has_nan, math.nan, values)
        places = torch.where(has_nan, torch.argmax(nan.to(torch.int32), dim), places)
    return (values.unsqueeze(dim), places.unsqueeze(dim)) if keepdim else (values, places)


@replaces(aten.nanmedian.dim)
def nanmedian_dim(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """nanmedian(x, dim) → the middle one of the elements of sort(x, dim) before the NaN, which are the last."""
    middle = (((x != x).logical_not().sum(dim, True) - 1) >> 1).clamp(min=0)
    values, places = (part.gather(dim, middle) for part in torch.sort(x, dim=dim))
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


@replaces(aten.nanmedian.default)
def nanmedian(x: Tensor) -> Tensor:
    """nanmedian(x) → nanmedian(flatten(x), 0)."""
    return torch.nanmedian(x.flatten(), 0)[0]


@replaces(aten.cummax.default)
def cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """cummax(x) → see `_running_extreme`."""
    return _running_extreme(x, dim, torch.ge)


@replaces(aten.cummin.default)
def cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """cummin(x) → see `_running_extreme`."""
    return _running_extreme(x, dim, torch.le)


@replaces(aten.logcumsumexp.default)
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """logcumsumexp(x) → by doubling with logaddexp, which does not overflow; 16 bits in float32, that in float64."""
    if x.dtype == torch.float32:
        return _running_log_sum(x.double(), dim).to(x.dtype)
    return in_float32(lambda wide: _running_log_sum(wide, dim))(x)


def _running_log_sum(x: Tensor, dim: int) -> Tensor:
    """log(sum(exp)) of the elements so far."""
    if x.dim() == 0:
        return x.clone()
    (sums,) = _running((x,), dim, lambda earlier, later: (torch.logaddexp(later[0], earlier[0]),))
    return sums


def _running_extreme(x: Tensor, dim: int, wins: Decomposition) -> tuple[Tensor, Tensor]:
    """The extreme so far and its last place."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)

    def extreme(earlier: _Parts, later: _Parts) -> _Parts:
        takes_later = wins(later[0], earlier[0])
        if is_float(x):
            takes_later = takes_later | (later[0] != later[0])
        return tuple(torch.where(takes_later, *pair) for pair in zip(later, earlier, strict=True))

    values, places = _running((x, _places(x, dim).expand(x.shape)), dim, extreme)
    return values, places


#: Tensors of one shape that are combined together: values and what is known of them.
_Parts = tuple[Tensor, ...]


def _running(parts: _Parts, dim: int, combine: Callable[[_Parts, _Parts], _Parts]) -> _Parts:
    """What `combine` makes of all elements so far, by doubling: after step k each knows the 2 ** k up to it."""
    for reach in _reaches(parts[0].size(dim)):
        parts = _combined_with_earlier(parts, dim, reach, combine)
    return tuple(part.clone() for part in parts)


def _combined_with_earlier(parts: _Parts, dim: int, reach: int, combine: Callable[[_Parts, _Parts], _Parts]) -> _Parts:
    """Each element combined with the one `reach` before it; the first ones stay."""
    size = parts[0].size(dim)
    if isinstance(size, int):
        earlier, later = (tuple(x.narrow(dim, start, size - reach) for x in parts) for start in (0, reach))
        pairs = zip(parts, combine(earlier, later), strict=True)
        return tuple(torch.cat([x.narrow(dim, 0, reach), new], dim) for x, new in pairs)
    combined = combine(tuple(_before(x, dim, reach) for x in parts), parts)
    is_first = _places(parts[0], dim) < reach
    return tuple(torch.where(is_first, x, new) for x, new in zip(parts, combined, strict=True))


#: The longest symbolic size along which something runs by doubling; calls with more are refused.
_LONGEST = 2**16


def _reaches(size: int | SymInt) -> list[int]:
    """The powers of two below a size, or below the largest that a symbolic one may be."""
    if not isinstance(size, int):
        longest = int(min(size.node.shape_env.bound_sympy(size.node.expr).upper, _LONGEST))
        require(size, longest, "a running extreme or sum")
        size = longest
    return [2**step for step in range((size - 1).bit_length())] if size > 1 else []


def _places(x: Tensor, dim: int) -> Tensor:
    """0, 1, .. along a dim, of size 1 along the others."""
    shape = [1] * x.dim()
    shape[dim] = -1
    return torch.arange(x.size(dim)).view(shape)


def _before(x: Tensor, dim: int, reach: int) -> Tensor:
    """What lies `reach` elements before each one; the first element where there is none."""
    return x.index_select(dim, (torch.arange(x.size(dim)) - reach).clamp(min=0))
