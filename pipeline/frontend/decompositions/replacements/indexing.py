"""Reading and writing at indices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.arithmetic import floor_divide_integers
from pipeline.frontend.decompositions.replacements.joint_indices import in_one_line, joined
from pipeline.frontend.decompositions.replacements.selection import index_by_masks, put_by_mask, without_masks
from pipeline.frontend.decompositions.replacements.table import aten, is_float, replaces

#: Whether the op that is taken apart is one whose places have been refused below zero.
_is_refused = ContextVar("is_refused", default=False)


@replaces(aten.index.Tensor)
def index(x: Tensor, indices: list[Tensor | None]) -> Tensor:
    """index(x, i32) → index(x, i64); index(x, mask) → index(x, places where the mask is set); see `joined`, too."""
    if any(tensor is not None and tensor.dtype in (torch.bool, torch.uint8) for tensor in indices):
        return index_by_masks(x, indices)
    wide = _wide_indices(indices)
    return joined(x, wide) if wide is indices else aten.index.Tensor(x, wide)


@replaces(aten.put.default)
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """put(x, index, s) → index_put(the line of x's elements, [index], s)."""
    line = aten.index_put.default(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate)
    return line.reshape(x.shape)


@replaces(aten.index_put.default)
def index_put(x: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """index_put(x, mask, value) → see `put_by_mask`; else the values get the shape of what the indices select.

    Torch-mlir broadcasts the values wrongly where they lack a dimension or have a size of 1, and divides by the number
    of indices, which ends the process where there are none.
    """
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.dtype == torch.bool:
        return put_by_mask(x, mask, values, accumulate=accumulate)
    if any(tensor is not None and tensor.dtype == torch.bool for tensor in indices):
        return aten.index_put.default(x, without_masks(indices), values, accumulate)
    if any(tensor is not None and 0 in _known(tensor.shape) for tensor in indices):
        return x.clone()
    if accumulate and x.dtype == torch.bool:
        return aten.index_put.default(x.to(torch.int32), indices, values.to(torch.int32), True) != 0
    wide = _wide_indices(indices)
    selected = aten.index.Tensor(x, wide).shape
    if wide is not indices or values.shape != selected:
        return aten.index_put.default(x, wide, values.expand(selected), accumulate)
    line, flat = in_one_line(wide, values)
    return NotImplemented if line is wide else aten.index_put.default(x, line, flat, accumulate)


@replaces(aten.gather.default)
def gather(x: Tensor, dim: int, places: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """gather(x: [], places) → gather(x as [1], places)."""
    if x.dim() and places.dim():
        return NotImplemented
    return aten.gather.default(x.reshape(-1), 0, places.reshape(-1)).view(places.shape)


@replaces(aten.take.default)
def take(x: Tensor, places: Tensor) -> Tensor:
    """take(x, places) → index(flatten(x), places); torch's own takes a single place for a number that it knows."""
    return aten.index.Tensor(x.reshape(-1), [places.reshape(-1)]).view(places.shape)


@replaces(aten.diagonal_scatter.default)
def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """diagonal_scatter(x, s) → index_put(x, (0, 1, ..), (0, 1, ..), s) with the two dimensions in front."""
    front = x.movedim((dim1, dim2), (0, 1))
    count = torch.arange(source.size(-1))
    places = [count + max(0, -offset), count + max(0, offset)]
    return aten.index_put.default(front, places, source.movedim(-1, 0)).movedim((0, 1), (dim1, dim2))


@replaces(aten.index_add.default)
def index_add(x: Tensor, dim: int, places: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """index_add(x, places, s, a) → index_put(x, places, a * s, accumulate); see `_refused_below_zero`."""
    added = source if alpha == 1 else source * alpha
    return _put_along(x, dim, _refused_below_zero(x, dim, places), added, accumulate=True)


@replaces(aten.index_reduce.default)
def index_reduce(
    x: Tensor, dim: int, places: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """index_reduce(x, places: [K], s) → scatter_reduce(x, the places of all elements of s, s)."""
    if x.dim() == 0:
        line = x.reshape(1), 0, places.reshape(-1), source.reshape(-1), reduce
        return aten.scatter_reduce.two(*line, include_self=include_self).reshape(())
    dim %= x.dim()
    shape = [-1 if axis == dim else 1 for axis in range(x.dim())]
    every = places.long().reshape(shape).expand(source.shape)
    return aten.scatter_reduce.two(x, dim, every, source, reduce, include_self=include_self)


@replaces(aten.index_copy.default)
def index_copy(x: Tensor, dim: int, places: Tensor, source: Tensor) -> Tensor:
    """index_copy(x, places, s) → index_put(x, places, s); see `_refused_below_zero`."""
    return _put_along(x, dim, _refused_below_zero(x, dim, places), source)


@replaces(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(x: Tensor, dim: int, places: Tensor, value: Any) -> Tensor:
    """index_fill(x, places, v) → index_put(x, places, v), which counts from the end, too; torch makes an index_copy."""
    number = value.to(x.dtype) if isinstance(value, Tensor) else torch.full((), value, dtype=x.dtype, device=x.device)
    shape = [places.numel() if axis == dim % x.dim() else size for axis, size in enumerate(x.shape)]
    return _put_along(x, dim, places, number.expand(shape or [places.numel()]))


def _put_along(x: Tensor, dim: int, places: Tensor, source: Tensor, *, accumulate: bool = False) -> Tensor:
    """Puts slices of a source to places along a dim."""
    if x.dim() == 0:
        line = x.reshape(1), 0, places.reshape(-1), source.reshape(-1)
        return _put_along(*line, accumulate=accumulate).reshape(())
    dim %= x.dim()
    rows = source.unsqueeze(dim) if source.dim() < x.dim() else source
    return aten.index_put.default(x, [*[None] * dim, places.reshape(-1)], rows, accumulate)


def _refused_below_zero(x: Tensor, dim: int, places: Tensor) -> Tensor:
    """The places, with those below zero behind the end, which is found when the call checks it.

    Some ops do not count from the end, as indexing does.
    """
    return torch.where(places < 0, x.size(dim) if x.dim() else 1, places)


@replaces(aten.scatter.value)
def scatter_value(x: Tensor, dim: int, places: Tensor, value: Any) -> Tensor:
    """scatter(x, places, number) → scatter(x, places, tensor), which torch-mlir lowers without crashing."""
    return aten.scatter.src(x, dim, places, torch.full(places.shape, value, dtype=x.dtype))


@replaces(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_by(x: Tensor, dim: int, places: Tensor, source: Any, *, reduce: str) -> Tensor:
    """scatter(x, places, s, reduce=add or multiply) → scatter_reduce(x, places, s, sum or prod)."""
    if not isinstance(source, Tensor):
        source = torch.full(places.shape, source, dtype=x.dtype)
    return aten.scatter_reduce.two(x, dim, places, source, {"add": "sum", "multiply": "prod"}[reduce])


@replaces(aten.scatter.src)
def scatter(x: Tensor, dim: int, places: Tensor, source: Tensor) -> Tensor:
    """scatter(x, places, s) → index_put of the elements of x in one line, where sizes are known."""
    return _put_in_line(x, dim, places, source, accumulate=False)


@replaces(aten.scatter_add.default)
def scatter_add(x: Tensor, dim: int, places: Tensor, source: Tensor) -> Tensor:
    """scatter_add(x: bool) → scatter_add(x as integers) != 0; others as `scatter`, which adds."""
    if x.dtype != torch.bool:
        return _put_in_line(x, dim, places, source, accumulate=True)
    return aten.scatter_add.default(x.to(torch.int32), dim, places, source.to(torch.int32)) != 0


def _put_in_line(x: Tensor, dim: int, places: Tensor, source: Tensor, *, accumulate: bool) -> Tensor:
    """Scatters to places in the line of all elements of x, see `_in_line`."""
    found = _in_line(x, dim, places, source)
    if found is None:
        return NotImplemented
    line, used = found
    return aten.index_put.default(x.reshape(-1), [line], used, accumulate).reshape(x.shape)


def _in_line(x: Tensor, dim: int, places: Tensor, source: Tensor) -> tuple[Tensor, Tensor] | None:
    """Places in the line of all elements of x, and what goes there; None where sizes are not known.

    There is one index for each, which is computed by vectors; torch-mlir makes a table of the indices in all
    dimensions, with divisions. An index out of range becomes one behind the end of the line, which is found when the
    call checks it.
    """
    sizes = [*x.shape, *places.shape]
    if x.dim() == 0 or not all(isinstance(size, int) and size > 0 for size in sizes):
        return None
    dim %= x.dim()
    steps = [math.prod(x.shape[axis + 1 :]) for axis in range(x.dim())]
    line = places.long() * steps[dim]
    for axis in range(x.dim()):
        if axis != dim and places.size(axis) > 1:
            counter = torch.arange(places.size(axis)) * steps[axis]
            line = line + counter.view([-1 if position == axis else 1 for position in range(x.dim())])
    inside = (places >= 0) & (places < x.size(dim))
    line = torch.where(inside, line, x.numel()).reshape(-1)
    return line, source[tuple(slice(size) for size in places.shape)].reshape(-1)


@replaces(aten.scatter_reduce.two)
def scatter_reduce(
    x: Tensor, dim: int, places: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """scatter_reduce(x: bool) → scatter_reduce(x as integers) != 0; see `_scatter_mean` for the mean of integers.

    Of others the places are refused below zero; they are places in the line of all elements of x, see `_in_line`.
    """
    if x.dtype == torch.bool:
        wide = (x.to(torch.int32), dim, places, source.to(torch.int32), reduce)
        return aten.scatter_reduce.two(*wide, include_self=include_self) != 0
    if not is_float(x) and reduce == "mean":
        return _scatter_mean(x, dim, places, source, include_self)
    if _is_refused.get():
        return NotImplemented
    token = _is_refused.set(True)
    try:
        found = _in_line(x, dim, places, source)
        if found is not None:
            return _reduced_in_line(x.reshape(-1), *found, reduce, include_self).reshape(x.shape)
        inside = _refused_below_zero(x, dim, places)
        return aten.scatter_reduce.two(x, dim, inside, source, reduce, include_self=include_self)
    finally:
        _is_refused.reset(token)


def _reduced_in_line(x: Tensor, line: Tensor, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    """scatter_reduce(x, line, s, sum) → index_put that adds, to zeros where x does not count; others as they are."""
    if reduce != "sum":
        return aten.scatter_reduce.two(x, 0, line, source, reduce, include_self=include_self)
    start = x if include_self else aten.index_put.default(x, [line], torch.zeros_like(source))
    return aten.index_put.default(start, [line], source, True)


def _scatter_mean(x: Tensor, dim: int, places: Tensor, source: Tensor, include_self: bool) -> Tensor:
    """The sum of what is scattered to a place, divided by how much it is."""
    added = torch.zeros_like(x).scatter_add(dim, places, torch.ones_like(source))
    kept = added == 0
    start = x if include_self else torch.where(kept, x, torch.zeros_like(x))
    total = start.scatter_add(dim, places, source)
    return floor_divide_integers(total, added + 1 if include_self else torch.where(kept, torch.ones_like(x), added))


@replaces(aten.searchsorted.Tensor)
def searchsorted(
    line: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """searchsorted(line, v) → how many elements are less than v, or not greater if `right`; for NaN all of them."""
    if sorter is not None:
        line = line.gather(-1, sorter)
    elements = line.unsqueeze(-2) if line.dim() > 1 else line
    behind = torch.gt if right or side == "right" else torch.ge
    before = behind(elements, values.unsqueeze(-1)).logical_not()
    return before.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


@replaces(aten.bucketize.Tensor)
def bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """bucketize(x, line) → searchsorted(line, x)."""
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


def _known(sizes: Iterable[Any]) -> list[int]:
    """Those of some sizes that do not change from call to call."""
    return [size for size in sizes if isinstance(size, int)]


def _wide_indices(indices: list[Tensor | None]) -> list[Tensor | None]:
    """The indices in int64; the same list if they are already."""
    if all(tensor is None or tensor.dtype in (torch.int64, torch.bool, torch.uint8) for tensor in indices):
        return indices
    return [tensor.long() if tensor is not None else None for tensor in indices]


@replaces(aten.select_scatter.default)
def select_scatter(x: Tensor, row: Tensor, dim: int, index: Any) -> Tensor:
    """select_scatter(x, row, dim, n) → slice_scatter of one row; index_put(x, [n], row) for an n that is not known.

    Torch's own decomposition asks whether n is negative, and writes all of x for one row of it.
    """
    dim %= x.dim()
    size, row = x.shape[dim], row.unsqueeze(dim).to(x.dtype)
    if isinstance(index, int):
        start = index + size if index < 0 else index
        return torch.slice_scatter(x, row.expand(x.narrow(dim, 0, 1).shape), dim, start, start + 1)
    place = torch.full([1], index, dtype=torch.int64)  # an index in a tensor is checked
    return torch.ops.aten.index_put(x, [*[None] * dim, place], row)
