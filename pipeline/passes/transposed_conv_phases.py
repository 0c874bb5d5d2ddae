"""transposed-conv-phases: transposed convolutions multiply no zeros that lie between the elements of their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.structured import any_structured
from pipeline.analysis.transposed_convs import TAPS, Axis, TransposedConvolution, read_transposed
from pipeline.analysis.weights import Weights
from pipeline.mlir import arith, ir, linalg, tensor, walk
from pipeline.passes.base import Pass
from pipeline.passes.rewriting import before, build_generic, copy_body, replace

_PARALLEL, _REDUCTION = "#linalg.iterator_type<parallel>", "#linalg.iterator_type<reduction>"

#: How many channels of a result a block of weights is for: two vectors of the widest registers.
_BLOCK = 32

#: What may stand between the zeros and the convolution.
_BETWEEN = ("tensor.extract_slice", "tensor.expand_shape")

#: How many times as large as it was a weight may become.
_MOST_GROWTH = 2.0


@dataclass(frozen=True)
class TransposedConvPhases(Pass):
    """Have transposed convolutions in steps compute each phase of their result from the elements and taps it needs.

    conv(insert(x, zeros, strides [2, 2]), w)  ->  collapse_shape(conv(pad(x), expand_shape(w)))

    With strides s, all results at s * block + phase multiply the same taps, every s-th one. So the phases become loops
    of the convolution, and dims of its result, [N, H / s, s, W / s, s, F]: with channels innermost that is how results
    lie anyway. The weight keeps its place, too, it is only filled up to whole steps where its taps do not come out even;
    an attribute says so, so that nobody has to multiply those zeros (`tile-and-vectorize`). Convolutions whose result
    has channels first get them innermost, and a transpose behind them.
    """

    name: ClassVar[str] = "transposed-conv-phases"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Rewrites the transposed convolutions of one function whose weights are known."""
        weights = Weights(op)
        inserts = walk(op, "tensor.insert_slice")
        for one in list(dict.fromkeys(reader for insert in inserts for reader in _readers(insert.results[0]))):
            view = any_structured(one)
            found = read_transposed(view) if view is not None else None
            if isinstance(found, TransposedConvolution):
                found = _obstacle(found, weights) or found
            if isinstance(found, str):
                self.missed(one, f"the zeros between its data are multiplied: {found}")
            elif found is not None:
                strides = " x ".join(str(axis.stride) for axis in found.axes)
                self.passed(one, f"computes {strides} phases of its result, without zeros between its data")
                _Rewriter(found).run()


def _readers(value: ir.Value) -> list[ir.Operation]:
    """The linalg ops that read data through a cut and a reshape."""
    users = [use.owner.operation for use in value.uses]
    behind = [reader for user in users if user.name in _BETWEEN for reader in _readers(user.results[0])]
    return [user for user in users if user.name.startswith("linalg.")] + behind


def _obstacle(found: TransposedConvolution, weights: Weights) -> str | None:
    """Why a transposed convolution stays as it is; None if nothing stands against its phases."""
    if found.view.op.operands[1] not in weights:
        return "its weight is computed"
    if found.growth > _MOST_GROWTH:
        return f"its weight would be {found.growth:.1f} times as large"
    return None if found.channel is not None else "its result has no channels of its own"


class _Rewriter:
    """Builds one convolution anew, with loops over phases.

    Attributes: `_moved` has the loop that each loop has become, `_phases` the loop over the phases of each axis.
    """

    def __init__(self, found: TransposedConvolution):
        self._found = found
        self._view = found.view
        stepped = [axis for axis in found.axes if axis.stride > 1]
        first = min(axis.result for axis in stepped)
        self._moved = [loop + len(stepped) * (loop >= first) for loop in range(self._view.loops)]
        self._phases = {axis: first + number for number, axis in enumerate(stepped)}
        self._loops = self._view.loops + len(stepped)

    def run(self) -> None:
        """Puts the new convolution in the place of the old one."""
        view, found = self._view, self._found
        output_dims = list(range(len(view.maps[2].results)))
        channel = output_dims.pop(found.channel)
        order = [*output_dims, channel]
        with before(view.op):
            weight, weight_map, taps = self._weight(lifts=order != sorted(order))
            places = [self._results(dim) for dim in order]
            init = self._zeros([size for dim in order for size in self._sizes(dim)])
            new = build_generic(
                [self._data(), weight],
                [init],
                [self._map(self._data_places()), self._map(weight_map), self._map(sum(places, []))],
                self._iterators(),
                lambda elements: copy_body(view, elements),
            )
            for name in view.op.attributes:
                if name.startswith("pipeline."):
                    new.attributes[name] = view.op.attributes[name]
            if any(taps):
                new.attributes[TAPS] = ir.DenseI64ArrayAttr.get(taps)
            result = self._joined(new.results[0], order)
        replace(view.op, [result])

    def _map(self, results: Sequence[ir.AffineExpr]) -> ir.AffineMap:
        return ir.AffineMap.get(self._loops, 0, list(results))

    def _iterators(self) -> list[ir.Attribute]:
        kinds = [_PARALLEL] * self._loops
        for loop, reduces in enumerate(self._view.reductions):
            if reduces:
                kinds[self._moved[loop]] = _REDUCTION
        return [ir.Attribute.parse(kind) for kind in kinds]

    def _loop(self, loop: int) -> ir.AffineExpr:
        return ir.AffineDimExpr.get(self._moved[loop])

    # data

    def _data(self) -> ir.Value:
        """The source with zeros around, in the shape of the data."""
        spread, axes = self._found.spread, {axis.dim: axis for axis in self._found.axes}
        rank = ir.RankedTensorType(spread.source.type).rank
        low = [axes[dim].low if dim in axes else 0 for dim in range(rank)]
        high = [axes[dim].high if dim in axes else 0 for dim in range(rank)]
        padded = _pad(spread.source, low, high)
        if all(len(group) == 1 for group in spread.groups):
            return padded
        data = ir.RankedTensorType(self._view.op.operands[0].type)
        shape = list(data.shape)
        for dim, (place, *others) in enumerate(spread.groups):
            if not others:
                shape[place] = ir.RankedTensorType(padded.type).shape[dim]
        return _expand(padded, shape, spread.groups)

    def _data_places(self) -> list[ir.AffineExpr]:
        axes = {self._found.spread.groups[axis.dim][0]: axis for axis in self._found.axes}
        moved = ir.AffineMap.get(self._loops, 0, [self._loop(loop) for loop in range(self._view.loops)])
        return [
            self._data_place(axes[place]) if place in axes else expression.compose(moved)
            for place, expression in enumerate(self._view.maps[0].results)
        ]

    def _data_place(self, axis: Axis) -> ir.AffineExpr:
        """block + dilation * tap + shift(phase), from the first zero before x on."""
        base = self._loop(axis.result) + self._loop(axis.tap) * axis.dilation
        if axis.stride == 1:
            return base + (axis.low + axis.shifts[0])
        phase = ir.AffineDimExpr.get(self._phases[axis])
        shift = _line(phase, [axis.low + shift for shift in axis.shifts])
        if shift is None:
            start = axis.low * axis.stride - axis.offset
            numerator = phase + self._first(axis) * axis.dilation + start
            shift = ir.AffineExpr.get_floor_div(numerator, axis.stride)
        return base + shift

    def _first(self, axis: Axis) -> ir.AffineExpr:
        """first(phase)"""
        phase = ir.AffineDimExpr.get(self._phases[axis])
        linear = _line(phase, axis.firsts)
        step = (axis.firsts[1] - axis.firsts[0]) % axis.stride
        return linear if linear is not None else ir.AffineExpr.get_mod(phase * step + axis.firsts[0], axis.stride)

    # weight

    def _weight(self, lifts: bool) -> tuple[ir.Value, list[ir.AffineExpr], list[int]]:
        """The weight with dims for taps and for the first of each phase; its indices; which taps it has (see TAPS).

        Where channels are to be innermost they are, in blocks if that goes, [F / block, .., block].
        """
        weight, indexing = self._view.op.operands[1], self._view.maps[1]
        axes = {dim: axis for dim, axis in self._found.weight_dims.items() if axis.stride > 1}
        kind = ir.RankedTensorType(weight.type)
        high = [axes[dim].taps * axes[dim].stride - axes[dim].kernel if dim in axes else 0 for dim in range(kind.rank)]
        channel = self._found.weight_channel if lifts else None
        shape: list[int] = []
        groups: list[list[int]] = []
        places: list[ir.AffineExpr] = []
        taps: list[int] = []
        moved = ir.AffineMap.get(self._loops, 0, [self._loop(loop) for loop in range(self._view.loops)])
        for dim, expression in enumerate(indexing.results):
            start, place = len(shape), expression.compose(moved)
            if dim in axes:
                axis = axes[dim]
                shape += [axis.taps, axis.stride]
                places += [place, self._first(axis)]
                taps += [axis.kernel if high[dim] and axis.taps > 1 else 0, 0]
            elif dim == channel and kind.shape[dim] % _BLOCK == 0 and isinstance(kind.element_type, ir.FloatType):
                shape += [kind.shape[dim] // _BLOCK, _BLOCK]
                places += [ir.AffineExpr.get_floor_div(place, _BLOCK), ir.AffineExpr.get_mod(place, _BLOCK)]
                taps += [0, 0]
            else:
                shape.append(kind.shape[dim])
                places.append(place)
                taps.append(0)
            groups.append(list(range(start, len(shape))))
        value = _expand(_pad(weight, [0] * kind.rank, high), shape, groups)
        if channel is None:
            return value, places, taps
        order = list(range(len(shape)))
        inner = order.pop(groups[channel][-1])
        order = [*([order.pop(groups[channel][0])] if len(groups[channel]) > 1 else []), *order, inner]
        value = _transpose(value, order)
        return value, [places[dim] for dim in order], [taps[dim] for dim in order]

    # result

    def _axis_of(self, dim: int) -> Axis | None:
        expression = self._view.maps[2].results[dim]
        loops = {axis.result: axis for axis in self._found.axes if axis.stride > 1}
        return loops.get(ir.AffineDimExpr(expression).position)

    def _results(self, dim: int) -> list[ir.AffineExpr]:
        """The indices that one of a result has become."""
        axis = self._axis_of(dim)
        place = self._loop(ir.AffineDimExpr(self._view.maps[2].results[dim]).position)
        return [place] if axis is None else [place, ir.AffineDimExpr.get(self._phases[axis])]

    def _sizes(self, dim: int) -> list[int | ir.Value]:
        axis = self._axis_of(dim)
        if axis is not None:
            return [axis.blocks, axis.stride]
        output = self._view.op.operands[2]
        kind = ir.RankedTensorType(output.type)
        if not kind.is_dynamic_dim(dim):
            return [kind.get_dim_size(dim)]
        return [tensor.DimOp(output, arith.ConstantOp(ir.IndexType.get(), dim).result).result]

    def _zeros(self, sizes: Sequence[int | ir.Value]) -> ir.Value:
        element = ir.RankedTensorType(self._view.op.operands[2].type).element_type
        return linalg.fill(_zero(element), outs=[tensor.EmptyOp(list(sizes), element).result])

    def _joined(self, value: ir.Value, order: list[int]) -> ir.Value:
        """The result with the dims that it had."""
        old = ir.RankedTensorType(self._view.op.results[0].type)
        groups: list[list[int]] = []
        shape = []
        count = 0
        for dim in order:
            axis = self._axis_of(dim)
            groups.append([count] if axis is None else [count, count + 1])
            count += len(groups[-1])
            shape.append(old.shape[dim] if axis is None else axis.blocks * axis.stride)
        joined = tensor.CollapseShapeOp(ir.RankedTensorType.get(shape, old.element_type), value, groups).result
        cut = _first_of(joined, [old.shape[dim] for dim in order])
        return cut if order == sorted(order) else _transpose(cut, [order.index(dim) for dim in range(len(order))])


def _line(phase: ir.AffineExpr, numbers: Sequence[int]) -> ir.AffineExpr | None:
    """The numbers of all phases as a + b * phase; None if they are not in a line."""
    step = numbers[1] - numbers[0]
    if any(second - first != step for first, second in zip(numbers, numbers[1:], strict=False)):
        return None
    return phase * step + numbers[0]


def _zero(element: ir.Type) -> ir.Value:
    return arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result


def _pad(value: ir.Value, low: Sequence[int], high: Sequence[int]) -> ir.Value:
    """A tensor with zeros around."""
    if not any(low) and not any(high):
        return value
    kind = ir.RankedTensorType(value.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [
        size if size == dynamic else size + first + last
        for size, first, last in zip(kind.shape, low, high, strict=True)
    ]
    zero = _zero(kind.element_type)
    pad = tensor.PadOp(ir.RankedTensorType.get(shape, kind.element_type), value, [], [], low, high)
    block = ir.Block.create_at_start(pad.operation.regions[0], [ir.IndexType.get()] * kind.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(zero)
    return pad.result


def _expand(value: ir.Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> ir.Value:
    kind = ir.RankedTensorType.get(list(shape), ir.RankedTensorType(value.type).element_type)
    if kind == value.type:
        return value
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = [
        tensor.DimOp(value, arith.ConstantOp(ir.IndexType.get(), dim).result).result
        for dim, group in enumerate(groups)
        for one in group
        if shape[one] == dynamic
    ]
    return tensor.ExpandShapeOp(kind, value, [list(group) for group in groups], sizes, list(shape)).result


def _first_of(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """As many elements from the start of each dim as a shape says."""
    kind = ir.RankedTensorType(value.type)
    if list(kind.shape) == list(shape):
        return value
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = [
        tensor.DimOp(value, arith.ConstantOp(ir.IndexType.get(), dim).result).result
        for dim, size in enumerate(shape)
        if size == dynamic
    ]
    rank = len(shape)
    result = ir.RankedTensorType.get(list(shape), kind.element_type)
    return tensor.ExtractSliceOp(result, value, [], sizes, [], [0] * rank, list(shape), [1] * rank).result


def _transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    kind = ir.RankedTensorType(value.type)
    sizes = [
        tensor.DimOp(value, arith.ConstantOp(ir.IndexType.get(), dim).result).result
        if kind.is_dynamic_dim(dim)
        else kind.get_dim_size(dim)
        for dim in permutation
    ]
    output = tensor.EmptyOp(sizes, kind.element_type).result
    return linalg.transpose(value, outs=[output], permutation=list(permutation)).results[0]
