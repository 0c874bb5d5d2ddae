"""Gives a transposed convolution loops over phases of its result; what transposed-conv-phases does with each one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from pipeline.analysis.transposed_conv import SpreadDim, TransposedConvolution
from pipeline.dialects.fusion import BARRIER
from pipeline.ir.attributes import TAPS
from pipeline.ir.constants import as_index, zero
from pipeline.ir.rewriting import before, build_generic, copy_attributes, copy_body, iterator_types, replace, size_of
from pipeline.mlir import affine, arith, ir, linalg, tensor
from pipeline.passes.layout.tensor_shapes import expand, leading, pad_with_zeros, transpose

#: How many channels of a result a block of a weight is for: two vectors of the widest registers.
_BLOCK = 32


@dataclass
class _Dims:
    """Dims of a tensor as they become: of which size, indexed how, which of them were filled up (see TAPS)."""

    shape: list[int] = field(default_factory=list)
    places: list[ir.AffineExpr] = field(default_factory=list)
    taps: list[tuple[int, int, int]] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)

    def add(self, *dims: tuple[int, ir.AffineExpr]) -> None:
        """The dims that the next dim of the tensor is split into: (size, index)."""
        first = len(self.shape)
        self.groups.append(list(range(first, first + len(dims))))
        for size, place in dims:
            self.shape.append(size)
            self.places.append(place)

    def ordered(self, order: Sequence[int]) -> _Dims:
        """The same dims, each alone, in another order."""
        at = {dim: number for number, dim in enumerate(order)}
        return _Dims(
            shape=[self.shape[dim] for dim in order],
            places=[self.places[dim] for dim in order],
            taps=[(at[taps], at[phases], elements) for taps, phases, elements in self.taps],
            groups=[[dim] for dim in range(len(order))],
        )


class PhaseLoops:
    """Builds one convolution anew, with loops over phases.

    Attributes of its loops: `_moved` has the loop that each one has become, `_phases` those over the phases of an axis.
    """

    def __init__(self, found: TransposedConvolution):
        self._found = found
        self._view = found.view
        self._stepped = [axis for axis in found.axes if axis.stride > 1]
        first = min(axis.result for axis in self._stepped)
        self._moved = [loop + len(self._stepped) * (loop >= first) for loop in range(self._view.loops)]
        self._phases = {axis: first + number for number, axis in enumerate(self._stepped)}
        self._loops = self._view.loops + len(self._stepped)

    def run(self) -> None:
        """Puts the new convolution in the place of the old one."""
        with before(self._view.op):
            result = self._narrow() if self._found.is_narrow else self._channels()
        replace(self._view.op, [result])

    def _channels(self) -> ir.Value:
        """The result, computed with channels innermost."""
        dims = list(range(len(self._found.output_loops)))
        assert self._found.channel is not None
        order = [*(dim for dim in dims if dim != self._found.channel), self._found.channel]
        value = self._joined(self._convolution(sum((self._split(dim) for dim in order), [])), order)
        return value if order == dims else transpose(value, [order.index(dim) for dim in dims])

    def _narrow(self) -> ir.Value:
        """The result of few channels: computed phase by phase along rows, which are put side by side by a copy."""
        dims = range(len(self._found.output_loops))
        whole = sum((self._split(dim) for dim in dims), [])
        blocks = [self._moved[axis.result] for axis in self._found.axes]
        phases = list(self._phases.values())
        loops = [*(loop for loop in whole if loop not in (*blocks, *phases)), *phases, *blocks]
        value = transpose(self._convolution(loops), [loops.index(loop) for loop in whole])
        joined = self._joined(value, list(dims))
        # what is computed of it is not to be computed in pieces as short as phases are many
        return ir.Operation.create(BARRIER, results=[joined.type], operands=[joined]).results[0]

    def _convolution(self, loops: Sequence[int]) -> ir.Value:
        """The convolution, of loops that are the dims of its result."""
        view = self._view
        data, places = self._data()
        weight, taps = self._weight()
        sums = [self._moved[loop] for loop, reduces in enumerate(view.reductions) if reduces]
        maps = [places, taps.places, [ir.AffineDimExpr.get(loop) for loop in loops]]
        element = ir.RankedTensorType(view.op.operands[2].type).element_type
        init = tensor.EmptyOp([self._size(loop) for loop in loops], element).result
        new = build_generic(
            [data, weight],
            [linalg.fill(zero(element), outs=[init])],
            [ir.AffineMap.get(self._loops, 0, indices) for indices in maps],
            iterator_types(loop in sums for loop in range(self._loops)),
            lambda elements: copy_body(view, elements),
        )
        copy_attributes(view.op, new, "pipeline.")
        if taps.taps:
            new.attributes[TAPS] = ir.DenseI64ArrayAttr.get([number for pair in taps.taps for number in pair])
        return new.results[0]

    def _at(self, expressions: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
        """Indices as they are with the new loops."""
        loops = [ir.AffineDimExpr.get(loop) for loop in self._moved]
        return [expression.compose(ir.AffineMap.get(self._loops, 0, loops)) for expression in expressions]

    # data

    def _data(self) -> tuple[ir.Value, list[ir.AffineExpr]]:
        """The source with zeros around, in the shape of the data; and its indices."""
        spread, axes = self._found.spread, {axis.dim: axis for axis in self._found.axes}
        source, dims = spread.source, range(len(spread.groups))
        places = self._at(self._view.maps[0].results)
        for axis in self._found.axes:
            places[spread.groups[axis.dim][0]] = self._data_place(axis)
        low = [axes[dim].low if dim in axes else 0 for dim in dims]
        high = [self._behind(axes[dim]) if dim in axes else 0 for dim in dims]
        if self._found.is_narrow and self._found.axes[-1].dim != dims[-1]:
            order = [*(dim for dim in dims if dim not in axes), *axes]
            source = transpose(source, order)
            low, high, places = (
                [low[dim] for dim in order],
                [high[dim] for dim in order],
                [places[dim] for dim in order],
            )
        padded = pad_with_zeros(source, low, high)
        shape = list(ir.RankedTensorType(self._view.op.operands[0].type).shape)
        if len(shape) == len(dims):
            return padded, places
        for dim, group in enumerate(spread.groups):
            if len(group) == 1:
                shape[group[0]] = ir.RankedTensorType(padded.type).shape[dim]
        return expand(padded, shape, spread.groups), places

    def _behind(self, axis: SpreadDim) -> int | ir.Value:
        """How many zeros are read behind the last element of x."""
        if axis.high is not None:
            return axis.high
        blocks, size = self._blocks(axis), axis.size
        if size is None:
            size = size_of(self._found.spread.source, axis.dim)
        count = _affine(ir.AffineDimExpr.get(0) - ir.AffineDimExpr.get(1) + axis.reach, blocks, size)
        return arith.MaxSIOp(count, as_index(0)).result

    def _data_place(self, axis: SpreadDim) -> ir.AffineExpr:
        """block + dilation * tap + shift(phase), from the first zero before x on."""
        block, tap = (ir.AffineDimExpr.get(self._moved[loop]) for loop in (axis.result, axis.tap))
        base = block + tap * axis.dilation
        if axis.stride == 1:
            return base + (axis.low + axis.shifts[0])
        phase = ir.AffineDimExpr.get(self._phases[axis])
        shift = _line(phase, [axis.low + shift for shift in axis.shifts])
        if shift is None:
            start = phase + self._first(axis) * axis.dilation + (axis.low * axis.stride - axis.offset)
            shift = ir.AffineExpr.get_floor_div(start, axis.stride)
        return base + shift

    def _first(self, axis: SpreadDim) -> ir.AffineExpr:
        """first(phase)"""
        phase = ir.AffineDimExpr.get(self._phases[axis])
        step = (axis.firsts[1] - axis.firsts[0]) % axis.stride
        line = _line(phase, axis.firsts)
        return ir.AffineExpr.get_mod(phase * step + axis.firsts[0], axis.stride) if line is None else line

    # weight

    def _weight(self) -> tuple[ir.Value, _Dims]:
        """The weight with its taps split by phases, each phase in one piece: [F / block, phases, C, taps, block].

        A block has all channels where they do not come out even. Results of few channels are computed along rows, and
        read one element of their weight after the other, wherever these lie.
        """
        weight, found = self._view.op.operands[1], self._found
        kind = ir.RankedTensorType(weight.type)
        axes = {dim: axis for dim, axis in found.weight_dims.items() if axis.stride > 1}
        channel = None if found.is_narrow else found.weight_channel
        high = [0] * kind.rank
        dims = _Dims()
        for dim, place in enumerate(self._at(self._view.maps[1].results)):
            size = kind.shape[dim]
            if dim in axes:
                axis = axes[dim]
                high[dim] = axis.taps * axis.stride - axis.kernel
                dims.add((axis.taps, place), (axis.stride, self._first(axis)))
                if high[dim] > 0 and axis.taps > 1:
                    dims.taps.append((*dims.groups[dim], size))
            elif dim == channel and size > _BLOCK and size % _BLOCK == 0:
                block, inner = ir.AffineExpr.get_floor_div(place, _BLOCK), ir.AffineExpr.get_mod(place, _BLOCK)
                dims.add((size // _BLOCK, block), (_BLOCK, inner))
            else:
                dims.add((size, place))
        value = expand(pad_with_zeros(weight, [0] * kind.rank, high), dims.shape, dims.groups)
        if channel is None:
            return value, dims
        *blocks, inner = dims.groups[channel]
        outer = [*blocks, *(dims.groups[dim][1] for dim in axes)]
        order = [*outer, *(dim for dim in range(len(dims.shape)) if dim not in (*outer, inner)), inner]
        return transpose(value, order), dims.ordered(order)

    # result

    def _split(self, dim: int) -> list[int]:
        """The loops over blocks and over phases that a dim of the result has."""
        loop = self._found.output_loops[dim]
        phases = [phase for axis, phase in self._phases.items() if axis.result == loop]
        return [self._moved[loop], *phases]

    def _size(self, loop: int) -> int | ir.Value:
        """How often a loop over results runs."""
        stride = next((axis.stride for axis, phase in self._phases.items() if phase == loop), None)
        if stride is not None:
            return stride
        old = self._moved.index(loop)
        axis = next((axis for axis in self._stepped if axis.result == old), None)
        return self._old_size(self._found.output_loops.index(old)) if axis is None else self._blocks(axis)

    def _blocks(self, axis: SpreadDim) -> int | ir.Value:
        if axis.blocks is not None:
            return axis.blocks
        results = self._old_size(self._found.output_loops.index(axis.result))
        return _affine(ir.AffineExpr.get_ceil_div(ir.AffineDimExpr.get(0), axis.stride), results)

    def _old_size(self, dim: int) -> int | ir.Value:
        """The size of a dim of the result."""
        output = self._view.op.operands[2]
        kind = ir.RankedTensorType(output.type)
        return size_of(output, dim) if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim)

    def _joined(self, value: ir.Value, order: list[int]) -> ir.Value:
        """Blocks and phases as one dim, as much of it as the result has; its dims are in this order."""
        kind = ir.RankedTensorType(value.type)
        groups: list[list[int]] = []
        for dim in order:
            first = sum(map(len, groups))
            groups.append(list(range(first, first + len(self._split(dim)))))
        shape = [
            kind.get_dynamic_size()
            if any(kind.is_dynamic_dim(dim) for dim in group)
            else prod(kind.shape[dim] for dim in group)
            for group in groups
        ]
        joined = tensor.CollapseShapeOp(ir.RankedTensorType.get(shape, kind.element_type), value, groups).result
        return leading(joined, [self._old_size(dim) for dim in order])


def _affine(expression: ir.AffineExpr, *values: int | ir.Value) -> ir.Value:
    """An index that is computed from others."""
    return affine.AffineApplyOp(
        ir.AffineMap.get(len(values), 0, [expression]), [as_index(value) for value in values]
    ).result


def _line(phase: ir.AffineExpr, numbers: Sequence[int]) -> ir.AffineExpr | None:
    """The numbers of all phases as a + b * phase; None if they are not in a line."""
    step = numbers[1] - numbers[0]
    if any(second - first != step for first, second in zip(numbers, numbers[1:], strict=False)):
        return None
    return phase * step + numbers[0]
