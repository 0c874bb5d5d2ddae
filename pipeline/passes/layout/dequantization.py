"""How the elements of a tensor are computed from quantized ones: through elementwise ops, transposes and reshapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.product_body import is_quantized
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.reshapes import RESHAPES, reassociation
from pipeline.ir.rewriting import copy_body
from pipeline.mlir import defining_op, ir

#: How many quantized elements a scale or a zero point stands for at least: groups are no smaller.
_LEAST_GROUP = 8

_SIMPLE = ("arith.", "math.")

#: Builds an element of a tensor, given those of its sources.
Build = Callable[[Sequence[ir.Value]], ir.Value]

#: The index of an element along each dim of a tensor.
Places = tuple[ir.AffineExpr, ...]


@dataclass(frozen=True)
class Source:
    """A tensor that is read, and where."""

    value: ir.Value
    places: Places


@dataclass(frozen=True)
class Dequantized:
    """A tensor of floats as what it is computed from, element by element.

    Attributes:
        sources: the tensor of quantized elements first, then scales and zero points.
        build: an element, from theirs.
    """

    sources: tuple[Source, ...]
    build: Build

    @property
    def quantized(self) -> Source:
        """The tensor of quantized elements."""
        return self.sources[0]


def read_dequantized(value: ir.Value, indexing: ir.AffineMap, weights: ConstExprs) -> Dequantized | None:
    """How what an op reads of `value` comes from a quantized weight; None if it does not.

    That is one tensor of as many small integers, and others that have far fewer elements; all are known from weights.
    """
    kind = ir.RankedTensorType(value.type)
    if not kind.has_static_shape or value in weights:
        return None
    reader = _Reader(prod(kind.shape), indexing.n_dims, weights)
    build = reader.read(value, tuple(indexing.results))
    numbers = range(len(reader.sources))
    quantized = [number for number in numbers if _is_quantized(reader.sources[number].value, reader.count)]
    others = [number for number in numbers if number not in quantized]
    if len(quantized) != 1 or not all(source.value in weights for source in reader.sources):
        return None
    if any(_count(reader.sources[number].value) * _LEAST_GROUP > reader.count for number in others):
        return None
    order = [*quantized, *others]

    def in_order(elements: Sequence[ir.Value]) -> ir.Value:
        return build([elements[order.index(number)] for number in numbers])

    return Dequantized(tuple(reader.sources[number] for number in order), in_order)


class _Reader:
    """Follows a tensor of `count` elements, read in a number of loops, to what it is computed from."""

    def __init__(self, count: int, loops: int, weights: ConstExprs):
        self.sources: list[Source] = []
        self.count = count
        self._loops = loops
        self._weights = weights

    def read(self, value: ir.Value, places: Places) -> Build:
        """How the element at `places` is built from those of the sources, of which there may be more now."""
        op = defining_op(value)
        if op is not None and op.name in RESHAPES and ir.RankedTensorType(value.type).has_static_shape:
            before = _before_expand if op.name == "tensor.expand_shape" else _before_collapse
            return self.read(op.operands[0], self._places(before(op, places)))
        view = structured(op) if value not in self._weights else None
        if op is None or view is None or len(op.results) != 1 or not view.is_elementwise or not _is_simple(view):
            return self._source(value, places)
        builds = [self.read(op.operands[number], self._read_at(view, number, places)) for number in range(view.inputs)]
        unread = list(view.body.arguments)[view.inputs :]
        return lambda elements: copy_body(view, [*(build(elements) for build in builds), *unread])[0]

    def _source(self, value: ir.Value, places: Places) -> Build:
        source = Source(value, places)
        if source not in self.sources:
            self.sources.append(source)
        number = self.sources.index(source)
        return lambda elements: elements[number]

    def _read_at(self, view: LinalgOp, number: int, places: Places) -> Places:
        """Where an elementwise op reads an input for its result at `places`."""
        loops: list[ir.AffineExpr] = [ir.AffineConstantExpr.get(0)] * view.loops
        for expression, place in zip(view.maps[-1].results, places, strict=True):
            loops[ir.AffineDimExpr(expression).position] = place
        inside = ir.AffineMap.get(self._loops, 0, loops)
        sizes = ir.ShapedType(view.operands[number].type).shape
        return self._places(
            ir.AffineConstantExpr.get(0) if size == 1 else expression.compose(inside)
            for expression, size in zip(view.maps[number].results, sizes, strict=True)
        )

    def _places(self, expressions: Iterable[ir.AffineExpr]) -> Places:
        """Expressions as what they are: those that are computed have no type that tells a loop from a sum."""
        return tuple(ir.AffineMap.get(self._loops, 0, list(expressions)).results)


def _is_simple(view: LinalgOp) -> bool:
    """Whether a body computes an element from those that it is given alone."""
    return all(op.name.startswith(_SIMPLE) and not op.regions for op in view.body_ops)


def _is_quantized(value: ir.Value, count: int) -> bool:
    return is_quantized(ir.RankedTensorType(value.type).element_type) and _count(value) == count


def _count(value: ir.Value) -> int:
    return prod(ir.RankedTensorType(value.type).shape)


def _before_expand(expand: ir.Operation, places: Places) -> Places:
    """Where a tensor.expand_shape has an element from."""
    sizes = ir.RankedTensorType(expand.results[0].type).shape
    return tuple(_joined([(places[dim], sizes[dim]) for dim in group]) for group in reassociation(expand))


def _joined(parts: Sequence[tuple[ir.AffineExpr, int]]) -> ir.AffineExpr:
    """The index along dims that lie behind each other, from the index along each and its size."""
    index: ir.AffineExpr = ir.AffineConstantExpr.get(0)
    for place, size in parts:
        whole = ir.AffineBinaryExpr(place).lhs if isinstance(place, ir.AffineModExpr) else None
        if whole is not None and (ir.AffineExpr.get_floor_div(whole, size), ir.AffineExpr.get_mod(whole, size)) == (
            index,
            place,
        ):
            index = whole
        else:
            index = ir.AffineExpr.get_add(ir.AffineExpr.get_mul(index, size), place)
    return index


def _before_collapse(collapse: ir.Operation, places: Places) -> Places:
    """Where a tensor.collapse_shape has an element from."""
    sizes = ir.RankedTensorType(collapse.operands[0].type).shape
    split = zip(reassociation(collapse), places, strict=True)
    return tuple(place for group, index in split for place in _parts(index, [sizes[dim] for dim in group]))


def _parts(index: ir.AffineExpr, sizes: Sequence[int]) -> list[ir.AffineExpr]:
    """The index along each of some dims, from the one along all of them."""
    parts: list[ir.AffineExpr] = []
    outer = [dim for dim, size in enumerate(sizes) if size != 1]
    for dim in reversed(range(len(sizes))):
        if sizes[dim] == 1:
            parts.insert(0, ir.AffineConstantExpr.get(0))
        elif dim == outer[0]:
            parts.insert(0, index)
        else:
            parts.insert(0, ir.AffineExpr.get_mod(index, sizes[dim]))
            index = ir.AffineExpr.get_floor_div(index, sizes[dim])
    return parts
