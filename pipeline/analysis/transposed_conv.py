"""Transposed convolutions in steps: how they come, and the phases that their results have.

torch-mlir puts zeros between the elements of the data, and has a convolution of stride 1 behind it:

    y[i] = sum of data[i + dilation * k] * w[k],    data[offset + stride * j] = x[j], 0 elsewhere

All results i = stride * block + phase of one phase multiply the same taps by elements of x, every stride-th k:

    k = stride * tap + first(phase),    j = block + dilation * tap + shift(phase)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, gcd, prod

from pipeline.analysis.zero_insertion import Spread, spread_of
from pipeline.ir.attributes import TAPS
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.matchers import is_zero
from pipeline.mlir import ir

#: The most channels that are computed along rows of the result, not side by side.
_NARROW = 8

#: The elements of a vector, for estimates.
_LANES = 16


@dataclass(frozen=True)
class SpreadDim:
    """A dim along which the data of a convolution has zeros between its elements, or (stride 1) around them only.

    Attributes:
        dim: of the source.
        result, tap: the loops over results, and over the weight.
        stride, offset, dilation: see above.
        size, results, kernel: the numbers of x, y and w; of the first two None if they are known at run time only.
    """

    dim: int
    result: int
    tap: int
    stride: int
    offset: int
    dilation: int
    size: int | None
    results: int | None
    kernel: int

    @property
    def taps(self) -> int:
        """How many taps a phase has at most."""
        return ceil(self.kernel / self.stride)

    @property
    def blocks(self) -> int | None:
        """How many results a phase has at most."""
        return None if self.results is None else ceil(self.results / self.stride)

    @cached_property
    def firsts(self) -> list[int]:
        """first(phase)"""
        inverse = pow(self.dilation, -1, self.stride)
        return [inverse * (self.offset - phase) % self.stride for phase in range(self.stride)]

    @cached_property
    def shifts(self) -> list[int]:
        """shift(phase)"""
        taps = enumerate(self.firsts)
        return [(phase + self.dilation * first - self.offset) // self.stride for phase, first in taps]

    @property
    def low(self) -> int:
        """How many zeros are read before the first element of x."""
        return max(0, -min(self.shifts))

    @property
    def reach(self) -> int:
        """How far behind the element of a block the last one lies that it reads."""
        return self.dilation * (self.taps - 1) + max(self.shifts)

    @property
    def high(self) -> int | None:
        """How many zeros are read behind the last element of x."""
        if self.blocks is None or self.size is None:
            return None
        return max(0, self.blocks + self.reach - self.size)


@dataclass(frozen=True)
class TransposedConvolution:
    """A convolution of data with zeros between its elements.

    Attributes:
        view: the convolution; its operands are data, weight, and zeros that sums start from.
        spread: its data.
        axes: the dims with zeros between or around.
    """

    view: LinalgOp
    spread: Spread
    axes: tuple[SpreadDim, ...]

    @property
    def weight_dims(self) -> dict[int, SpreadDim]:
        """The dim of the weight that is along the taps of each axis."""
        positions = {_position(expression): dim for dim, expression in enumerate(self.view.maps[1].results)}
        return {positions[axis.tap]: axis for axis in self.axes}

    @property
    def output_loops(self) -> list[int]:
        """The loop of each dim of the result."""
        return self.view.loops_read(2)

    @property
    def channel(self) -> int | None:
        """The dim of the result along channels that only weight and result have; None if that is not one dim."""
        loops = self.output_loops
        found = [loop for loop in loops if self._is_fixed(0, loop) and not self._is_fixed(1, loop)]
        return loops.index(found[0]) if len(found) == 1 and len(loops) == len(self.view.maps[2].results) else None

    @property
    def weight_channel(self) -> int | None:
        """The dim of the weight along these channels; None if they lie in blocks."""
        assert self.channel is not None
        positions = [_position(expression) for expression in self.view.maps[1].results]
        loop = self.output_loops[self.channel]
        return positions.index(loop) if loop in positions else None

    @property
    def is_last(self) -> bool:
        """Whether these channels are the innermost dim of the result."""
        return self.channel == len(self.output_loops) - 1

    @property
    def is_narrow(self) -> bool:
        """Whether these channels are so few that vectors along them would be nearly empty."""
        size = None if self.channel is None else self.view.sizes[self.output_loops[self.channel]]
        if size is None or size > _NARROW:
            return False
        return size == 1 or _filled(self.axes[-1].blocks) > _filled(size)

    @property
    def can_have_rows(self) -> bool:
        """Whether the data may have the dims that are spread innermost, by a transpose if need be."""
        rank = len(self.spread.groups)
        return self.axes[-1].dim == rank - 1 or all(len(group) == 1 for group in self.spread.groups)

    def _is_fixed(self, operand: int, loop: int) -> bool:
        return all(coefficient(expression, loop) == 0 for expression in self.view.maps[operand].results)

    @property
    def growth(self) -> float:
        """How many times as large a weight is whose phases have equally many taps."""
        return prod(axis.taps * axis.stride / axis.kernel for axis in self.axes)


def read_transposed(view: LinalgOp) -> TransposedConvolution | str | None:
    """A linalg op as a transposed convolution; why it is none that has phases; None if it has no zeros between."""
    if len(view.op.operands) != 3 or not any(view.reductions):
        return None
    spread = spread_of(view.op.operands[0])
    if spread is None:
        return None
    if not is_zero(view.op.operands[2]):
        return "its sums do not start from zero"
    axes = []
    for dim, stride in enumerate(spread.strides):
        if stride == 1 and _is_whole(spread, dim):
            continue
        axis = _axis(view, spread, dim)
        if isinstance(axis, str):
            return axis
        axes.append(axis)
    return TransposedConvolution(view, spread, tuple(axes))


def taps_of_phase(view: LinalgOp, loop: int) -> ir.AffineExpr | None:
    """How many taps a loop over those of a phase has that are not zero, by other loops; None if all may be."""
    kind = view.operands[1].type if TAPS in view.op.attributes else None
    if not isinstance(kind, ir.ShapedType):
        return None
    places = list(view.maps[1].results)
    for dim, phases, elements in _filled_up(view.op):
        there = {dim, phases} <= set(range(len(places))) and not kind.is_dynamic_dim(phases)
        if there and places[dim] == ir.AffineDimExpr.get(loop):
            return ir.AffineExpr.get_ceil_div(places[phases] * -1 + elements, kind.get_dim_size(phases))
    return None


def renumber_taps(op: ir.Operation, dims: Sequence[int | None]) -> None:
    """Says of a convolution's weight where its dims lie now; None for one that is no longer whole."""
    if TAPS not in op.attributes:
        return
    places = dict(enumerate(dims))
    moved = [(places.get(taps), places.get(phases), elements) for taps, phases, elements in _filled_up(op)]
    left = [number for pair in moved if None not in pair for number in pair]
    op.attributes[TAPS] = ir.DenseI64ArrayAttr.get(left)


def _filled_up(op: ir.Operation) -> Iterator[tuple[int, int, int]]:
    """The dims of a convolution's weight that were filled up, as TAPS has them: taps, phases, elements."""
    numbers = list(ir.DenseI64ArrayAttr(op.attributes[TAPS]))
    return zip(numbers[::3], numbers[1::3], numbers[2::3], strict=False)


def _filled(size: int | None) -> float:
    """Which part of their vectors so many elements fill; all of them, if that is not known."""
    return 1.0 if size is None else size / (ceil(size / _LANES) * _LANES)


def _axis(view: LinalgOp, spread: Spread, dim: int) -> SpreadDim | str:
    window = _window(view, spread.groups[dim])
    if window is None:
        return "its data is read in another way than along a window"
    result, tap, dilation = window
    source = ir.RankedTensorType(spread.source.type)
    size = None if source.is_dynamic_dim(dim) else source.get_dim_size(dim)
    results, kernel = view.sizes[result], view.sizes[tap]
    if kernel is None:
        return "the size of its weight is known at run time only"
    if 0 in (size, results, kernel):
        return "it has no elements"
    if gcd(dilation, spread.strides[dim]) != 1:
        return "its dilation and its stride have a factor in common"
    return SpreadDim(dim, result, tap, spread.strides[dim], spread.offsets[dim], dilation, size, results, kernel)


def _window(view: LinalgOp, group: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(result, tap, dilation) of data that is read at result + dilation * tap along a dim; None if it is not."""
    if len(group) != 1:
        return None
    expression = view.maps[0].results[group[0]]
    steps = [coefficient(expression, loop) for loop in range(view.loops)]
    loops = [loop for loop, step in enumerate(steps) if step != 0]
    if len(loops) != 2 or view.reductions[loops[0]] or not view.reductions[loops[1]]:
        return None
    result, tap = loops
    first, dilation = steps[result], steps[tap]
    if first != 1 or dilation is None or dilation < 1 or _starts_late(view, expression):
        return None
    alone = _is_alone(view, result, (0, 2)) and _is_alone(view, tap, (0, 1))
    return (result, tap, dilation) if alone else None


def _starts_late(view: LinalgOp, expression: ir.AffineExpr) -> bool:
    """Whether an index is not 0 in the first iteration."""
    zero = ir.AffineConstantExpr.get(0)
    return expression.compose(ir.AffineMap.get(0, 0, [zero] * view.loops)) != zero


def _is_whole(spread: Spread, dim: int) -> bool:
    """Whether nothing was put around a dim of the source either."""
    return spread.offsets[dim] == 0 and spread.sizes[dim] == ir.RankedTensorType(spread.source.type).shape[dim]


def _is_alone(view: LinalgOp, loop: int, operands: tuple[int, int]) -> bool:
    """Whether a loop moves these two operands only, the second one along one dim of its own."""
    for number, indexing in enumerate(view.maps):
        moved = [expression for expression in indexing.results if coefficient(expression, loop) != 0]
        if len(moved) != (number in operands):
            return False
        if number == operands[1] and moved != [ir.AffineDimExpr.get(loop)]:
            return False
    return True


def _position(expression: ir.AffineExpr) -> int | None:
    return ir.AffineDimExpr(expression).position if isinstance(expression, ir.AffineDimExpr) else None
