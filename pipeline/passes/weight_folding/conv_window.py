"""Windows: where in its data a contraction reads, and where the weight of one fits into that of another."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.contraction import Contraction
from pipeline.analysis.window_dims import WindowDim, window_dim
from pipeline.analysis.zero_insertion import zero_padding
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.reshapes import reassociation
from pipeline.mlir import defining_op, ir
from pipeline.passes.weight_folding.scale_propagation import NotScalableError


@dataclass(frozen=True)
class ConvWindow:
    """What a contraction reads.

    Attributes:
        contraction: whose window this is.
        value: the tensor that is read, in front of padding with zeros and of reshapes that split its dims.
        groups: the dims of the contraction's data that each dim of the tensor is split into.
        sizes: those of the contraction's data, without padding.
        axes: along which the window slides; along other dims, the data is indexed by loops.
    """

    contraction: Contraction
    value: ir.Value
    groups: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    axes: tuple[WindowDim, ...]

    @property
    def weight_shape(self) -> list[int]:
        """The sizes of the weight."""
        return _shape(self.contraction.view.operands[self.contraction.weight])


def read_window(contraction: Contraction) -> ConvWindow | None:
    """The window of a contraction; None if its data is indexed in another way."""
    data = contraction.view.maps[contraction.data].results
    axes: dict[int, WindowDim] = {}
    for dim in range(len(data)):
        if loop_of(data[dim]) is None:
            axis = window_dim(contraction.view, contraction.data, contraction.weight, dim)
            if axis is None:
                return None
            axes[dim] = axis
    value = contraction.view.operands[contraction.data]
    groups = [[dim] for dim in range(len(data))]
    low, high = [0] * len(data), [0] * len(data)
    sizes = _shape(value)
    while (op := defining_op(value)) is not None:
        zeros = zero_padding(op)
        if op.name == "tensor.expand_shape":
            groups = [[part for dim in group for part in groups[dim]] for group in reassociation(op)]
        elif zeros is not None and all(pair == (0, 0) or _only(groups[dim]) in axes for dim, pair in enumerate(zeros)):
            for dim, (first, last) in enumerate(zeros):
                if first or last:
                    low[groups[dim][0]] += first
                    high[groups[dim][0]] += last
        else:
            break
        value = op.operands[0]
    sizes = [size - low[dim] - high[dim] if size >= 0 else size for dim, size in enumerate(sizes)]
    slid = tuple(WindowDim(**{**vars(axis), "low": low[axis.dim]}) for axis in axes.values())
    return ConvWindow(contraction, value, tuple(map(tuple, groups)), tuple(sizes), slid)


def offsets(inner: ConvWindow, outer: ConvWindow) -> list[int]:
    """Where the weight of `inner` goes in that of `outer`, along each of its dims, so that one weight does for both.

    Raises `NotScalableError` if there is no such place.
    """
    one, other = inner.contraction, outer.contraction
    kinds = [(each.view.op.name, each.weight, each.view.maps[2], each.view.maps[each.weight]) for each in (one, other)]
    if kinds[0] != kinds[1] or [axis.dim for axis in inner.axes] != [axis.dim for axis in outer.axes]:
        raise NotScalableError("they are of different kinds")
    if (inner.value, inner.groups) != (outer.value, outer.groups):
        raise NotScalableError("they read different data")
    found = [0] * len(inner.weight_shape)
    for small, large in zip(inner.axes, outer.axes, strict=True):
        if (small.out, small.stride, small.weight_dim) != (large.out, large.stride, large.weight_dim):
            raise NotScalableError("their strides differ")
        if small.taps > 1 and small.step != large.step:
            raise NotScalableError("their dilations differ")
        found[large.weight_dim] = _offset(large, small.low, small.taps)
    slid = {axis.weight_dim for axis in outer.axes}
    for dim, sizes in enumerate(zip(inner.weight_shape, outer.weight_shape, strict=True)):
        if dim not in slid and sizes[0] != sizes[1]:
            raise NotScalableError("their groups or channels differ")
    return found


@dataclass(frozen=True)
class Places:
    """Where in a weight stand the factors that an element of the data has in the result of the same index.

    Attributes:
        equal: pairs of dims of the weight, whose indices are equal there.
        taps: dims of the weight, each with the index there.
    """

    equal: tuple[tuple[int, int], ...]
    taps: tuple[tuple[int, int], ...]


def own_places(window: ConvWindow) -> Places:
    """The places for each element's own result; raises `NotScalableError` if there are none."""
    contraction = window.contraction
    result = contraction.view.op.results[0]
    element = ir.RankedTensorType(result.type).element_type
    data = ir.RankedTensorType(contraction.view.operands[contraction.data].type)
    if _shape(result) != list(window.sizes) or element != data.element_type:
        raise NotScalableError("its result has another shape than its data")
    slid = {axis.dim: axis for axis in window.axes}
    equal, taps = [], []
    for dim, (index, out) in enumerate(
        zip(contraction.view.maps[contraction.data].results, contraction.output_loops, strict=True)
    ):
        loop = loop_of(index)
        if dim in slid:
            axis = slid[dim]
            if axis.out != out or axis.stride != 1:
                raise NotScalableError("its result is not indexed as its data is")
            taps.append((axis.weight_dim, _offset(axis, 0, 1)))
        elif loop != out:
            loops = contraction.weight_loops
            if loop not in loops or out not in loops:
                raise NotScalableError("its result is not indexed as its data is")
            equal.append((loops.index(loop), loops.index(out)))
    return Places(tuple(equal), tuple(taps))


def _offset(axis: WindowDim, low: int, taps: int) -> int:
    """The number of the tap that reads what the first of `taps` taps with `low` zeros in front reads."""
    distance = axis.low - low
    if distance % axis.step or not 0 <= distance // axis.step <= axis.taps - taps:
        raise NotScalableError("the window of one does not lie in that of the other")
    return distance // axis.step


def _only(group: list[int]) -> int | None:
    return group[0] if len(group) == 1 else None


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)
