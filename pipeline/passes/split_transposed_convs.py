"""split-transposed-convs: a transposed convolution in steps is several convolutions that multiply no zeros."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.mlir import arith, defining_op, ir, linalg, tensor, walk
from pipeline.passes.base import Pass
from pipeline.passes.rewriting import before, build_generic, replace

#: Convolutions with channels first, whose weights are [results, channels, taps ..].
_CONVOLUTIONS = ("linalg.conv_1d_ncw_fcw", "linalg.conv_2d_nchw_fchw", "linalg.conv_3d_ncdhw_fcdhw")

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class SplitTransposedConvs(Pass):
    """Turn a convolution of an image with zeros between its elements into one for each distance from an element.

    y = conv(x with s - 1 zeros between, w)   ->   y[s * q + r] = conv(x, w[t(r) :: s])[q]  for r = 0 .. s - 1

    In steps of 2 by 2 that is a quarter of the products. Only for known sizes.
    """

    name: ClassVar[str] = "split-transposed-convs"
    anchor: ClassVar[str] = "func.func"

    most: int = field(default=16, metadata={"help": "how many convolutions may become of one"})

    def run(self, op: ir.Operation) -> None:
        """Rewrites one function."""
        for conv in walk(op, *_CONVOLUTIONS):
            spread = _spread_of(conv)
            if spread is None:
                continue
            if isinstance(spread, str) or math.prod(spread.steps) > self.most:
                self.missed(conv, spread if isinstance(spread, str) else f"{math.prod(spread.steps)} would be many")
                continue
            self.passed(conv, f"becomes {math.prod(spread.steps)} convolutions without the zeros between")
            _rewrite(conv, spread)


@dataclass(frozen=True)
class _Spread:
    """An image with zeros between its elements and around them.

    Attributes:
        image: the elements, [batch, channels, ..].
        steps: how far they are apart, in each direction.
        margins: how many zeros are in front of the first one.
        initial: the number that the sums of the convolution start from; None if they start from a tensor's elements.
    """

    image: ir.Value
    steps: list[int]
    margins: list[int]
    initial: ir.Value | None


def _spread_of(conv: ir.Operation) -> _Spread | str | None:
    """What a convolution reads, if that is such an image; or why it can be no other convolutions."""
    insert, fill = defining_op(conv.operands[0]), defining_op(conv.operands[2])
    if insert is None or insert.name != "tensor.insert_slice":
        return None
    offsets, sizes, steps = (
        list(ir.DenseI64ArrayAttr(insert.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    if max(steps[2:]) == 1 or _zero_filled(insert.operands[1]) is None:
        return None
    kinds = [ir.RankedTensorType(value.type) for value in (*conv.operands, insert.operands[0])]
    if not all(kind.has_static_shape for kind in kinds) or _DYNAMIC in offsets:
        return "its sizes are not known"
    if any(_numbers(conv, name) != [1] * (len(steps) - 2) for name in ("strides", "dilations")):
        return "it has steps or gaps of its own"
    if offsets[:2] != [0, 0] or steps[:2] != [1, 1] or sizes != list(kinds[3].shape):
        return "its image is no whole one"
    if 0 in kinds[2].shape:
        return "it has no results"
    initial = fill.operands[0] if fill is not None and fill.name == "linalg.fill" else None
    return _Spread(insert.operands[0], steps[2:], offsets[2:], initial)


def _zero_filled(value: ir.Value) -> ir.Operation | None:
    """The fill that makes a tensor of zeros."""
    fill = defining_op(value)
    number = defining_op(fill.operands[0]) if fill is not None and fill.name == "linalg.fill" else None
    if number is None or number.name != "arith.constant":
        return None
    attribute = number.attributes["value"]
    zero = ir.FloatAttr(attribute).value if isinstance(attribute, ir.FloatAttr) else ir.IntegerAttr(attribute).value
    return fill if zero == 0 else None


def _numbers(conv: ir.Operation, name: str) -> list[int]:
    elements = ir.DenseIntElementsAttr(conv.attributes[name])
    return [int(elements[position]) for position in range(len(elements))]


@dataclass(frozen=True)
class _Phase:
    """The results at one distance from an element, along one direction: y[steps * q + r] for a fixed r.

    They sum image[q + u + start] * w[tap + steps * u] over u up to `taps`.
    """

    tap: int
    taps: int
    start: int

    @staticmethod
    def of(r: int, step: int, margin: int, kernel: int) -> _Phase:
        """What the results at distance r sum: the taps that meet an element are those that reach from r to one."""
        tap = (margin - r) % step
        return _Phase(tap, max(0, -(-(kernel - tap) // step)), (r + tap - margin) // step)


def _rewrite(conv: ir.Operation, spread: _Spread) -> None:
    """Puts the convolutions side by side in one tensor, each result then where it belongs."""
    out = ir.RankedTensorType(conv.results[0].type)
    steps, (batch, channels, *sizes) = spread.steps, out.shape
    kernel = list(ir.RankedTensorType(conv.operands[1].type).shape[2:])
    counts = [-(-size // step) for size, step in zip(sizes, steps, strict=True)]
    with before(conv):
        stacked = tensor.EmptyOp([*steps, batch, channels, *counts], out.element_type).result
        for place in itertools.product(*map(range, steps)):
            phases = [_Phase.of(*one) for one in zip(place, steps, spread.margins, kernel, strict=True)]
            result = _convolve(conv, spread, phases, [batch, channels, *counts])
            stacked = _put(result, stacked, place)
        result = _in_place(stacked, steps, out)
        replace(conv, [result if spread.initial is not None else _sum(result, conv.operands[2])])


def _convolve(conv: ir.Operation, spread: _Spread, phases: list[_Phase], shape: list[int]) -> ir.Value:
    """The convolution that gives the results at one distance in each direction."""
    element = ir.RankedTensorType(conv.results[0].type).element_type
    initial = arith.ConstantOp(element, _zero(element)).result if spread.initial is None else spread.initial
    start = linalg.fill(initial, outs=[tensor.EmptyOp(shape, element).result])
    if any(phase.taps == 0 for phase in phases):
        return start
    weight = conv.operands[1]
    outer = list(ir.RankedTensorType(weight.type).shape[:2])
    taps, first = [phase.taps for phase in phases], [phase.tap for phase in phases]
    chosen = _slice(weight, [0, 0, *first], [*outer, *taps], [1, 1, *spread.steps])
    image = _window(
        spread.image,
        [phase.start for phase in phases],
        [count + phase.taps - 1 for count, phase in zip(shape[2:], phases, strict=True)],
    )
    if image is None:
        return start
    copy = conv.clone()
    for number, value in enumerate((image, chosen, start)):
        copy.operands[number] = value
    copy.results[0].set_type(ir.RankedTensorType(start.type))
    return copy.results[0]


def _sum(a: ir.Value, b: ir.Value) -> ir.Value:
    """a + b, element by element."""
    kind = ir.RankedTensorType(a.type)
    add = arith.AddIOp if isinstance(kind.element_type, ir.IntegerType) else arith.AddFOp
    parallel = [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * kind.rank
    empty = tensor.EmptyOp(kind.shape, kind.element_type).result
    maps = [ir.AffineMap.get_identity(kind.rank)] * 3
    return build_generic([a, b], [empty], maps, parallel, lambda elements: [add(*elements[:2]).result]).results[0]


def _window(image: ir.Value, starts: list[int], sizes: list[int]) -> ir.Value | None:
    """image[.., start : start + size] in each direction, with zeros where that is outside of it; None if all is."""
    kind = ir.RankedTensorType(image.type)
    batch, channels, *there = kind.shape
    if starts == [0] * len(there) and sizes == there:
        return image
    if any(start >= size or start + count <= 0 for start, size, count in zip(starts, there, sizes, strict=True)):
        return None
    low = [max(0, start) for start in starts]
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    high = [max(first, min(end, size)) for first, end, size in zip(low, ends, there, strict=True)]
    inside = [end - first for first, end in zip(low, high, strict=True)]
    part = image if inside == there else _slice(image, [0, 0, *low], [batch, channels, *inside], [1] * kind.rank)
    if inside == sizes:
        return part
    zero = arith.ConstantOp(kind.element_type, _zero(kind.element_type)).result
    shape = [batch, channels, *sizes]
    around = linalg.fill(zero, outs=[tensor.EmptyOp(shape, kind.element_type).result])
    offsets = [0, 0, *(first - start for first, start in zip(low, starts, strict=True))]
    return _insert(part, around, offsets, [batch, channels, *inside])


def _zero(element: ir.Type) -> ir.Attribute:
    return ir.IntegerAttr.get(element, 0) if isinstance(element, ir.IntegerType) else ir.FloatAttr.get(element, 0.0)


def _slice(source: ir.Value, offsets: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> ir.Value:
    kind = ir.RankedTensorType.get(list(sizes), ir.RankedTensorType(source.type).element_type)
    return tensor.ExtractSliceOp(kind, source, [], [], [], list(offsets), list(sizes), list(steps)).result


def _insert(source: ir.Value, into: ir.Value, offsets: Sequence[int], sizes: Sequence[int]) -> ir.Value:
    ones = [1] * len(offsets)
    return tensor.InsertSliceOp(source, into, [], [], [], list(offsets), list(sizes), ones).result


def _put(result: ir.Value, stacked: ir.Value, place: Sequence[int]) -> ir.Value:
    """stacked[place] = result."""
    shape = list(ir.RankedTensorType(result.type).shape)
    return _insert(result, stacked, [*place, *[0] * len(shape)], [*[1] * len(place), *shape])


def _in_place(stacked: ir.Value, steps: list[int], out: ir.RankedTensorType) -> ir.Value:
    """y[b, c, q * steps + r ..] = stacked[r .., b, c, q ..], as far as y goes."""
    rank, kind = len(steps), ir.RankedTensorType(stacked.type)
    batch, channels, *counts = kind.shape[rank:]
    apart = [size for pair in zip(counts, steps, strict=True) for size in pair]
    dims = [ir.AffineDimExpr.get(dim) for dim in range(2 + 2 * rank)]
    read = [*(dims[3 + 2 * axis] for axis in range(rank)), *dims[:2], *(dims[2 + 2 * axis] for axis in range(rank))]
    parallel = [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(dims)
    maps = [ir.AffineMap.get(len(dims), 0, read), ir.AffineMap.get_identity(len(dims))]
    empty = tensor.EmptyOp([batch, channels, *apart], kind.element_type).result
    moved = build_generic([stacked], [empty], maps, parallel, lambda elements: [elements[0]]).results[0]
    whole = [batch, channels, *(count * step for count, step in zip(counts, steps, strict=True))]
    groups = ir.Attribute.parse(str([[0], [1], *([2 + 2 * axis, 3 + 2 * axis] for axis in range(rank))]))
    merged = tensor.CollapseShapeOp(ir.RankedTensorType.get(whole, kind.element_type), moved, groups).result
    return merged if whole == list(out.shape) else _slice(merged, [0] * out.rank, list(out.shape), [1] * out.rank)
