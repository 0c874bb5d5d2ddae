"""drop-padded-taps: dilated convolutions multiply no taps that read padding alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from math import prod
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.window_dims import WindowDim, window_dim
from pipeline.analysis.zero_insertion import zero_padding
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import defining_op, ir, tensor, walk
from pipeline.passes.layout.tensor_shapes import pad_with_zeros
from pipeline.passmanager.base import Pass

_CONVOLUTIONS = ("linalg.conv_1d_ncw_fcw", "linalg.conv_2d_nchw_fchw", "linalg.conv_3d_ncdhw_fcdhw")

#: Inits that are made anew for each part.
_MADE = ("linalg.broadcast", "linalg.fill")

#: An axis is split into so many bands at most, if that leaves out a tenth of its products.
_MOST_BANDS, _WORTH_A_SPLIT = 3, 0.9

#: What must be gained at least: a share of the cost, and products, those of twenty microseconds.
_LEAST_SHARE, _LEAST_PRODUCTS = 0.25, 1_000_000

#: To read a tap of a weight takes as long as to multiply it with so many elements of a channel. One that is known at
#: run time alone is cut and packed then, which takes longer. Parts of windows without dilation count as if theirs were:
#: their images are of four elements at most along an axis, and kernels for each cost more than they gain.
_ELEMENTS_PER_READ, _ELEMENTS_PER_CUT = 8, 32


@dataclass(frozen=True)
class Band:
    """Neighbours along an axis of a result, and the taps of which one or the other reads data.

    Attributes:
        start: the first of them.
        size: how many there are.
        first: the first tap.
        taps: how many there are.
    """

    start: int
    size: int
    first: int
    taps: int


@dataclass(frozen=True)
class DropPaddedTaps(Pass):
    """Have convolutions leave out the taps that read only zeros around their data.

    conv(pad(x), w)  ->  insert_slice(conv(slice(x), slice(w)), .., conv(slice(x), slice(w)))

    A window of 3 x 3 taps that lie 24 apart reads, in an image of 28 x 28, data with its middle tap everywhere and with
    each of the others in a margin alone: nine convolutions of a sixth of the products. A tap that reads data nowhere
    is left out of the weight. Sizes have to be known, and a quarter of the products has to go. Small images are cut
    into no parts: each of those would read its weights for a few elements.
    """

    name: ClassVar[str] = "drop-padded-taps"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Rewrites the convolutions of one function."""
        convolutions = [found for name in _CONVOLUTIONS for found in walk(op, name)]
        constants = ConstExprs(op) if convolutions else None
        for conv in convolutions:
            pad = defining_op(conv.operands[0])
            zeros = zero_padding(pad) if pad is not None else None
            view = any_structured(conv)
            if pad is not None and zeros is not None and view is not None and None not in view.sizes:
                self._rewrite(view, pad.operands[0], zeros, constants is not None and constants.knows(view.operands[1]))

    def _rewrite(self, view: LinalgOp, source: ir.Value, zeros: Sequence[tuple[int, int]], known: bool) -> None:
        shape = ir.RankedTensorType(source.type).shape
        axes = _axes(view, zeros)
        if axes is None:
            return
        positions = [view.sizes[axis.out] or 0 for axis in axes]
        bands = [_bands(axis, shape[axis.dim], count) for axis, count in zip(axes, positions, strict=True)]
        if not all(band.taps for line in bands for band in line):
            return
        kept = prod(
            sum(band.size * band.taps for band in line) / (count * axis.taps)
            for axis, count, line in zip(axes, positions, bands, strict=True)
        )
        dilated = any(axis.step > 1 for axis in axes)
        per_read = _ELEMENTS_PER_READ if known and dilated else _ELEMENTS_PER_CUT
        uncut = [Band(0, count, 0, axis.taps) for axis, count in zip(axes, positions, strict=True)]
        if _cost(product(*bands), shape[0], per_read) > (1 - _LEAST_SHARE) * _cost([uncut], shape[0], per_read):
            return
        if (1 - kept) * prod(size or 0 for size in view.sizes) < _LEAST_PRODUCTS:
            return
        parts = prod(map(len, bands))
        split = f", in {parts} parts" if parts > 1 else ""
        self.passed(view.op, f"computes {round(100 * kept)} % of its products{split}: others are of padding")
        with before(view.op):
            kind = ir.RankedTensorType(view.op.results[0].type)
            whole = tensor.EmptyOp(list(kind.shape), kind.element_type).result
            for part in product(*bands):
                whole = _part(view, source, dict(zip(axes, part, strict=True)), whole)
        replace(view.op, [whole])


def _cost(parts: Iterable[Sequence[Band]], batch: int, per_read: int) -> int:
    """What parts cost, in products of one channel with another; each of them reads its weights."""
    return sum(
        prod(band.taps for band in part) * max(batch * prod(band.size for band in part), per_read) for part in parts
    )


def _axes(view: LinalgOp, zeros: Sequence[tuple[int, int]]) -> list[WindowDim] | None:
    """The axes of a convolution of padded data; None if other dims are padded."""
    found = {dim: window_dim(view, 0, 1, dim) for dim in range(len(zeros))}
    if any(found[dim] is None and pair != (0, 0) for dim, pair in enumerate(zeros)):
        return None
    return [dataclasses.replace(axis, low=zeros[dim][0]) for dim, axis in found.items() if axis is not None]


def _bands(axis: WindowDim, size: int, positions: int) -> list[Band]:
    """The results along an axis of `size` elements, in bands that read data with the same taps, where that pays."""

    def reading(position: int) -> tuple[int, int]:
        """The first tap that reads data, and the first behind it that reads none."""
        start = axis.low - axis.stride * position
        first = max(0, -(-start // axis.step))
        return first, max(first, min(axis.taps, (start + size - 1) // axis.step + 1))

    found = []
    for (first, behind), group in groupby(range(positions), reading):
        line = list(group)
        found.append(Band(line[0], len(line), first, behind - first))
    first = min((band.first for band in found if band.taps), default=0)
    behind = max((band.first + band.taps for band in found), default=0)
    whole = Band(0, positions, first, behind - first)
    split = sum(band.size * band.taps for band in found) <= _WORTH_A_SPLIT * positions * whole.taps
    return found if split and len(found) <= _MOST_BANDS and all(band.taps for band in found) else [whole]


def _data(axis: WindowDim, size: int, band: Band) -> tuple[int, int, int, int]:
    """(first element, how many, zeros in front, zeros behind) that a band reads of `size` elements."""
    first = axis.stride * band.start + axis.step * band.first - axis.low
    behind = first + axis.stride * (band.size - 1) + axis.step * (band.taps - 1) + 1
    start, end = max(first, 0), min(behind, size)
    return start, end - start, start - first, behind - end


def _part(view: LinalgOp, source: ir.Value, bands: dict[WindowDim, Band], whole: ir.Value) -> ir.Value:
    """`whole` with the results of bands in it."""
    read, taps, place = (
        [[0, size] for size in ir.RankedTensorType(value.type).shape] for value in (source, *view.operands[1:])
    )
    low, high = [0] * len(read), [0] * len(read)
    results = [loop_of(index) for index in view.maps[2].results]
    for axis, band in bands.items():
        first, size, low[axis.dim], high[axis.dim] = _data(axis, read[axis.dim][1], band)
        read[axis.dim] = [first, size]
        taps[axis.weight_dim] = [band.first, band.taps]
        place[results.index(axis.out)] = [band.start, band.size]
    data, weight = pad_with_zeros(_slice(source, read), low, high), _slice(view.operands[1], taps)
    part = _copy(view.op, [data, weight, _init(view.operands[2], place)])
    offsets, sizes = [first for first, _ in place], [size for _, size in place]
    return tensor.InsertSliceOp(part, whole, [], [], [], offsets, sizes, [1] * len(place)).result


def _copy(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
    """What an op gives for other operands, the last of which has the type of its result."""
    copy = op.clone().operation
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    copy.results[0].set_type(operands[-1].type)
    return copy.results[0]


def _init(init: ir.Value, place: Sequence[Sequence[int]]) -> ir.Value:
    """A part of an init; one that repeats a vector or a number does so in the part alone."""
    made = defining_op(init)
    if made is None or made.name not in _MADE:
        return _slice(init, place)
    empty = tensor.EmptyOp([size for _, size in place], ir.RankedTensorType(init.type).element_type).result
    return _copy(made, [made.operands[0], empty])


def _slice(value: ir.Value, place: Sequence[Sequence[int]]) -> ir.Value:
    """[first, first + size) of each dim."""
    kind = ir.RankedTensorType(value.type)
    offsets, sizes = [first for first, _ in place], [size for _, size in place]
    if list(kind.shape) == sizes:
        return value
    cut = ir.RankedTensorType.get(sizes, kind.element_type)
    return tensor.ExtractSliceOp(cut, value, [], [], [], offsets, sizes, [1] * kind.rank).result
