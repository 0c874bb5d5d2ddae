"""drop-padded-taps: dilated convolutions multiply no taps that read padding alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, product
from math import prod
from typing import ClassVar

from pipeline.ir.indexing_maps import coefficient, loop_of
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.matchers import zero_padding
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import defining_op, ir, tensor, walk
from pipeline.passes.layout.tensor_shapes import pad_with_zeros
from pipeline.passmanager.base import Pass

_CONVOLUTIONS = ("linalg.conv_1d_ncw_fcw", "linalg.conv_2d_nchw_fchw", "linalg.conv_3d_ncdhw_fcdhw")

#: Inits that are made anew for each part.
_MADE = ("linalg.broadcast", "linalg.fill")

#: An axis is split into so many bands at most, if that leaves out a tenth of its products.
_MOST_BANDS, _WORTH_A_SPLIT = 3, 0.9

#: The least products that must be left out, of all and at all: those of twenty microseconds.
_LEAST_SHARE, _LEAST_PRODUCTS = 0.25, 1_000_000


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
class WindowAxis:
    """A dim of the data that a window slides along: index = stride * out + step * tap - low.

    Attributes:
        dim: the number of the dim.
        out: the loop over positions.
        tap: the loop over taps.
        stride: how far the window moves.
        step: the distance between two taps.
        low: how many zeros stand in front of the data.
        size: how many elements of data there are.
    """

    dim: int
    out: int
    tap: int
    stride: int
    step: int
    low: int
    size: int

    def bands(self, positions: int, taps: int) -> list[Band]:
        """The results along the axis, in bands of those that read data with the same taps, where that pays."""

        def reading(position: int) -> tuple[int, int]:
            """The first tap that reads data, and the first behind it that reads none."""
            start = self.low - self.stride * position
            first = max(0, -(-start // self.step))
            return first, max(first, min(taps, (start + self.size - 1) // self.step + 1))

        found = []
        for (first, behind), group in groupby(range(positions), reading):
            line = list(group)
            found.append(Band(line[0], len(line), first, behind - first))
        first = min((band.first for band in found if band.taps), default=0)
        behind = max((band.first + band.taps for band in found), default=0)
        whole = Band(0, positions, first, behind - first)
        split = sum(band.size * band.taps for band in found) <= _WORTH_A_SPLIT * positions * whole.taps
        return found if split and len(found) <= _MOST_BANDS and all(band.taps for band in found) else [whole]

    def data(self, band: Band) -> tuple[int, int, int, int]:
        """(first element, how many, zeros in front, zeros behind) that a band reads."""
        first = self.stride * band.start + self.step * band.first - self.low
        behind = first + self.stride * (band.size - 1) + self.step * (band.taps - 1) + 1
        start, end = max(first, 0), min(behind, self.size)
        return start, end - start, start - first, behind - end


@dataclass(frozen=True)
class DropPaddedTaps(Pass):
    """Have convolutions leave out the taps that read only zeros around their data.

    conv(pad(x), w)  ->  insert_slice(conv(slice(x), slice(w)), .., conv(slice(x), slice(w)))

    A window of 3 x 3 taps that lie 24 apart reads, in an image of 28 x 28, data with its middle tap everywhere and with
    each of the others in a margin alone: nine convolutions of a sixth of the products. A tap that reads data nowhere
    is left out of the weight. Sizes have to be known, and a quarter of the products has to go.
    """

    name: ClassVar[str] = "drop-padded-taps"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Rewrites the convolutions of one function."""
        for conv in [found for name in _CONVOLUTIONS for found in walk(op, name)]:
            pad = defining_op(conv.operands[0])
            zeros = zero_padding(pad) if pad is not None else None
            view = any_structured(conv)
            if pad is not None and zeros is not None and view is not None and None not in view.sizes:
                self._rewrite(view, pad.operands[0], zeros)

    def _rewrite(self, view: LinalgOp, source: ir.Value, zeros: Sequence[tuple[int, int]]) -> None:
        axes = _axes(view, source, zeros)
        if axes is None:
            return
        sizes = [size or 0 for size in view.sizes]
        bands = [axis.bands(sizes[axis.out], sizes[axis.tap]) for axis in axes]
        if not all(band.taps for line in bands for band in line):
            return
        kept = prod(
            sum(band.size * band.taps for band in line) / (sizes[axis.out] * sizes[axis.tap])
            for axis, line in zip(axes, bands, strict=True)
        )
        if kept > 1 - _LEAST_SHARE or (1 - kept) * prod(sizes) < _LEAST_PRODUCTS:
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


def _axes(view: LinalgOp, source: ir.Value, zeros: Sequence[tuple[int, int]]) -> list[WindowAxis] | None:
    """The axes of a convolution of padded data; None if they are others, or other dims are padded."""
    shape, axes = ir.RankedTensorType(source.type).shape, []
    for dim, index in enumerate(view.maps[0].results):
        moved = {loop: coefficient(index, loop) or 0 for loop in range(view.loops)}
        outs = [loop for loop, by in moved.items() if by > 0 and not view.reductions[loop]]
        taps = [loop for loop, by in moved.items() if by > 0 and view.reductions[loop]]
        if loop_of(index) is None and len(outs) == len(taps) == 1:
            axes.append(WindowAxis(dim, outs[0], taps[0], moved[outs[0]], moved[taps[0]], zeros[dim][0], shape[dim]))
        elif zeros[dim] != (0, 0) or loop_of(index) is None:
            return None
    return axes or None


def _part(view: LinalgOp, source: ir.Value, bands: dict[WindowAxis, Band], whole: ir.Value) -> ir.Value:
    """`whole` with the results of bands in it."""
    shape = ir.RankedTensorType(source.type).shape
    read, low, high = [[0, size] for size in shape], [0] * len(shape), [0] * len(shape)
    for axis, band in bands.items():
        first, size, low[axis.dim], high[axis.dim] = axis.data(band)
        read[axis.dim] = [first, size]
    place = _along(view, 2, {axis.out: [band.start, band.size] for axis, band in bands.items()})
    taps = _along(view, 1, {axis.tap: [band.first, band.taps] for axis, band in bands.items()})
    data, weight = pad_with_zeros(_slice(source, read), low, high), _slice(view.op.operands[1], taps)
    part = _copy(view.op, [data, weight, _init(view.op.operands[2], place)])
    offsets, sizes = [first for first, _ in place], [size for _, size in place]
    return tensor.InsertSliceOp(part, whole, [], [], [], offsets, sizes, [1] * len(place)).result


def _copy(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
    """What an op gives for other operands, the last of which has the type of its result."""
    copy = op.clone().operation
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    copy.results[0].set_type(operands[-1].type)
    return copy.results[0]


def _along(view: LinalgOp, operand: int, spans: dict[int, list[int]]) -> list[list[int]]:
    """[first, size] of each dim of an operand, of which some run along loops of which a part is taken."""
    shape = ir.RankedTensorType(view.op.operands[operand].type).shape
    loops = map(loop_of, view.maps[operand].results)
    return [spans.get(loop, [0, size]) for loop, size in zip(loops, shape, strict=True)]  # type: ignore[arg-type]


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
