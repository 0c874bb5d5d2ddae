"""What selects elements by their values: results of sizes that the code finds out.

All of it goes by the rank of an element, how many of those before it are selected: a running sum. So what is selected
is scattered to its rank in memory for as many as there are, of which the result is a slice; and what is written to
selected elements is gathered by their rank, which needs no size.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from pipeline.frontend.decompositions.replacements.table import aten, replaces


def _ranks(flags: Tensor) -> Tensor:
    """[n] of bools -> [n]: how many flags are set up to each, itself included."""
    return torch.cumsum(flags.to(torch.int64), 0)


def _line_of_places(flags: Tensor, room: Any = 1) -> Tensor:
    """[n] of bools -> [n + room]: the places of those that are set, in order, then zeros."""
    n = flags.size(0)
    target = torch.where(flags, _ranks(flags) - 1, n + room - 1)
    places = torch.arange(n)
    line = torch.zeros(n + room, dtype=torch.int64)
    return aten.index_put.default(line, [target], places)


def places_of(flags: Tensor) -> Tensor:
    """[n] of bools -> [count]: the places of those that are set, in order."""
    return _line_of_places(flags).narrow(0, 0, _count(flags.sum(), flags.size(0)))


def _count(count: Tensor, bound: Any) -> Any:
    """The number in a tensor as a size that is at most `bound`."""
    size = count.item()
    torch._check(size >= 0)
    torch._check(size <= bound)
    return size


def _coordinates(places: Tensor, shape: Any) -> list[Tensor]:
    """The index along each dimension of a shape for places in the line of its elements."""
    steps = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    rest, columns = places, []
    for step in steps[:-1]:
        columns.append(torch.div(rest, step, rounding_mode="floor"))
        rest = rest - columns[-1] * step
    return [*columns, rest] if steps else []


@replaces(aten.nonzero.default)
def nonzero(x: Tensor) -> Tensor:
    """nonzero(x: [a, b]) -> [count, 2]."""
    if x.dim() == 0:
        return torch.zeros(_count((x != 0).to(torch.int64), 1), 0, dtype=torch.int64)
    return torch.stack(_coordinates(places_of((x != 0).reshape(-1)), x.shape), 1)


@replaces(aten.nonzero_static.default)
def nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """nonzero_static(x, size=n) → the first n rows of nonzero(x), filled up."""
    flags = (x != 0).reshape(-1)
    places = _line_of_places(flags, max(size, 1)).narrow(0, 0, size)
    is_there = torch.arange(size) < flags.sum()
    columns = [torch.where(is_there, column, fill_value) for column in _coordinates(places, x.shape)]
    return torch.stack(columns, 1) if columns else torch.zeros(size, 0, dtype=torch.int64)


@replaces(aten.masked_select.default)
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """masked_select(x, mask) → flatten(x) at the places where the mask is set."""
    x, mask = torch.broadcast_tensors(x, mask)
    return x.reshape(-1).index_select(0, places_of(mask.reshape(-1)))


def index_by_masks(x: Tensor, indices: list[Tensor | None]) -> Tensor:
    """index(x, [mask, ..]) → index(x, [places where the mask is set, ..])."""
    first = indices[0]
    if len(indices) == 1 and first is not None and first.dim() > 0:  # of the first dimensions
        line = x.reshape(-1, *x.shape[first.dim() :]) if first.dim() > 1 else x
        return line.index_select(0, places_of(first.to(torch.bool).reshape(-1)))
    return aten.index.Tensor(x, without_masks(indices))


def without_masks(indices: list[Tensor | None]) -> list[Tensor | None]:
    """The indices with the coordinates of what a mask selects in its place."""
    plain: list[Tensor | None] = []
    for index in indices:
        if index is None or index.dtype not in (torch.bool, torch.uint8):
            plain.append(index)
        else:
            plain += _coordinates(places_of(index.to(torch.bool).reshape(-1)), index.shape)
    return plain


def put_by_mask(x: Tensor, mask: Tensor, values: Tensor, *, accumulate: bool) -> Tensor:
    """x[mask] = values → where(mask, values by rank, x); one row of values goes everywhere."""
    flags = mask.reshape(mask.shape + (1,) * (x.dim() - mask.dim()))
    rest = x.dim() - mask.dim()
    if values.dim() <= rest or statically_known_true(values.size(0) == 1):
        row = values.reshape(values.shape[1:]) if values.dim() > rest else values
        chosen = row.expand(x.shape)
    else:
        chosen = _by_rank(mask, values).reshape(*mask.shape, *values.shape[1:])
    zero = torch.zeros_like(x) if accumulate else x
    selected = torch.where(flags, chosen, zero)
    return x + selected if accumulate else selected


def _by_rank(mask: Tensor, values: Tensor) -> Tensor:
    """The row of values for each element of a mask, in one line; where the mask is not set, zeros."""
    flags, count = mask.reshape(-1), values.size(0)
    message = "shape mismatch: the mask does not select as many elements as there are values"
    aten._assert_async.msg(flags.sum() == count, message)
    rows = torch.cat([values, values.new_zeros(1, *values.shape[1:])])
    return rows.index_select(0, torch.where(flags, _ranks(flags) - 1, count))


@replaces(aten.masked_scatter.default)
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """masked_scatter(x, mask, s) → where(mask, elements of s by rank, x)."""
    x, mask = torch.broadcast_tensors(x, mask)
    flags, line = mask.reshape(-1), torch.cat([source.reshape(-1), source.new_zeros(1)])
    aten._assert_async.msg(flags.sum() < line.size(0), "masked_scatter: the source has too few elements")
    chosen = line.index_select(0, torch.where(flags, _ranks(flags) - 1, 0))
    return torch.where(mask, chosen.reshape(x.shape), x)


@replaces(aten.masked_scatter_backward.default)
def masked_scatter_backward(gradient: Tensor, mask: Tensor, sizes: list[Any]) -> Tensor:
    """masked_scatter_backward(g, mask, [n]) → what is selected of g, then zeros up to n elements."""
    flags, count = mask.expand(gradient.shape).reshape(-1), math.prod(sizes)
    target = torch.where(flags, _ranks(flags) - 1, count)
    line = aten.index_put.default(gradient.new_zeros(count + 1), [target], gradient.reshape(-1))
    return line.narrow(0, 0, count).reshape(sizes)


@replaces(aten._unique2.default)
def unique(x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """unique(x) → unique_consecutive(sort(x)); the inverse scattered to where the elements came from."""
    line, origin = torch.sort(x.reshape(-1), stable=True)
    values, groups, counts = unique_consecutive(line, True, return_counts)
    if not return_inverse:
        return values, torch.zeros(0, dtype=torch.int64), counts
    inverse = aten.index_put.default(torch.zeros_like(origin), [origin], groups)
    return values, inverse.reshape(x.shape), counts


@replaces(aten.unique_consecutive.default)
def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """unique_consecutive(x) → the elements that differ from the one before them, with the number and length of runs."""
    if dim is not None and x.dim() != 1:
        return NotImplemented
    line = x.reshape(-1)
    n = line.size(0)
    before = line.index_select(0, (torch.arange(n) - 1).clamp(min=0))
    starts = (line != before) | (torch.arange(n) == 0)
    places = places_of(starts)
    values = line.index_select(0, places)
    empty = torch.zeros(0, dtype=torch.int64)
    inverse = (_ranks(starts) - 1).reshape(x.shape) if return_inverse else empty
    if not return_counts:
        return values, inverse, empty
    ends = torch.cat([places, torch.full([1], n, dtype=torch.int64)])
    return values, inverse, ends.narrow(0, 1, places.size(0)) - places


@replaces(aten.repeat_interleave.Tensor)
def repeat_interleave(repeats: Tensor, *, output_size: Any = None) -> Tensor:
    """repeat_interleave([2, 0, 1]) → [0, 0, 2]: of each place how many runs begin up to it, minus one."""
    wide = repeats.to(torch.int64)
    ends, total = torch.cumsum(wide, 0), wide.sum()
    aten._assert_async.msg((wide >= 0).all(), "repeats can not be negative")
    if output_size is None:
        output_size = total.item()
        torch._check(output_size >= 0)
    aten._assert_async.msg(total == output_size, "repeat_interleave: output_size is not the sum of the repeats")
    begun = torch.zeros(output_size + 1, dtype=torch.int64)
    begun = aten.index_put.default(begun, [ends - wide], torch.ones_like(wide), True)
    return (torch.cumsum(begun, 0) - 1).narrow(0, 0, output_size).to(repeats.dtype)


@replaces(aten.bincount.default)
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """bincount(x) → zeros(max(x) + 1, or minlength) with the weights, or ones, added at x.

    One pass finds the least and the largest number, where there are some for sure.
    """
    wide = x.to(torch.int64)
    if isinstance(x.size(0), int) and x.size(0) > 0:
        is_valid, most = wide.amin() >= 0, wide.amax().clamp(min=minlength - 1)
    else:
        is_valid, most = (wide >= 0).all(), torch.cat([wide, torch.full([1], minlength - 1, dtype=torch.int64)]).amax()
    aten._assert_async.msg(is_valid, "bincount only supports 1-d non-negative integral inputs.")
    size = most.add(1).item()
    torch._check(size >= minlength)
    if weights is None:
        weights = torch.ones_like(wide)
    elif not weights.is_floating_point():
        weights = weights.double()
    return aten.index_put.default(torch.zeros(size, dtype=weights.dtype), [wide], weights, True)
