"""How the elements of a tensor are computed from quantized ones: through elementwise ops, transposes and reshapes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.product_body import is_quantized
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.reshapes import RESHAPES
from pipeline.ir.rewriting import empty_like
from pipeline.mlir import defining_op, ir, linalg, tensor, terminator, walk_where
from pipeline.passes.layout.reshaped_places import Places, before_collapse, before_expand, whole_index

#: How many quantized elements a scale or a zero point stands for at least: groups are no smaller.
_LEAST_GROUP = 8

#: How many times the bytes of the weights behind it a tensor may have to count as a weight where quantized ones are
#: looked for: fewer than they have as floats.
QUANTIZED_GROWTH = 3

#: Of more ops elements are no longer dequantized; an op counts as often as its result is used.
_MOST_OPS = 100

_SIMPLE = ("arith.", "math.")

_WIDENING = ("arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp", "arith.extf")


@dataclass(frozen=True)
class Source:
    """A tensor that is read, and where."""

    value: ir.Value
    places: Places

    @property
    def lies_along_loops(self) -> bool:
        """Whether each index is a loop of its own, or the same everywhere, as along a dim of size 1."""
        loops = [loop_of(place) for place in self.places if not isinstance(place, ir.AffineConstantExpr)]
        return None not in loops and len(set(loops)) == len(loops)


@dataclass(frozen=True)
class Read:
    """The element of a source, by its number."""

    source: int


@dataclass(frozen=True)
class Compute:
    """What an op of a body computes from others."""

    op: ir.Operation
    operands: tuple[Expression, ...]


Expression = Read | Compute


@dataclass(frozen=True)
class Dequantized:
    """A tensor as what it is computed from, element by element.

    Attributes:
        sources: the tensor of quantized elements first, then scales and zero points.
        element: how one is computed from theirs.
    """

    sources: tuple[Source, ...]
    element: Expression

    @property
    def quantized(self) -> Source:
        """The tensor of quantized elements."""
        return self.sources[0]

    def build(self, elements: Sequence[ir.Value]) -> ir.Value:
        """An element, from those of the sources, at the insertion point."""
        return build(self.element, elements)


def read_loops(sources: Iterable[Source]) -> set[int]:
    """The loops along which sources are read: along a dim of size 1, none is."""
    loops = [loop_of(place) for source in sources for place in source.places]
    return {loop for loop in loops if loop is not None}


def build(expression: Expression, elements: Sequence[ir.Value] | Mapping[int, ir.Value]) -> ir.Value:
    """Builds an expression of the elements of sources, by the numbers of these, at the insertion point."""
    if isinstance(expression, Read):
        return elements[expression.source]
    operands = [build(operand, elements) for operand in expression.operands]
    copy = expression.op.clone()
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    return copy.results[0]


def sources_of(expression: Expression) -> set[int]:
    """The numbers of the sources that an expression reads."""
    if isinstance(expression, Read):
        return {expression.source}
    return set[int]().union(*map(sources_of, expression.operands))


def squeezed(source: Source) -> Source:
    """A source without its dims of size 1, behind which nothing looks as if it moved along the innermost one."""
    sizes = ir.RankedTensorType(source.value.type).shape
    kept = [dim for dim, size in enumerate(sizes) if size != 1]
    if not kept or len(kept) == len(sizes):
        return source
    starts = [0, *kept[1:], len(sizes)]
    groups = [list(range(*pair)) for pair in itertools.pairwise(starts)]
    kind = ir.RankedTensorType.get([sizes[dim] for dim in kept], source.value.type.element_type)
    value = tensor.CollapseShapeOp(kind, source.value, groups).result
    return Source(value, tuple(source.places[dim] for dim in kept))


def joined(source: Source, loops: int) -> Source:
    """A source with dims that a loop goes through one inside of the other as one dim.

    q[n, k / 32, k % 32]  ->  q[n, k]
    """
    sizes = ir.RankedTensorType(source.value.type).shape
    groups, places = _joined_dims(source)
    if len(groups) == len(sizes):
        return source
    kept = [prod(sizes[dim] for dim in group) for group in groups]
    kind = ir.RankedTensorType.get(kept, source.value.type.element_type)
    value = tensor.CollapseShapeOp(kind, source.value, groups).result
    return Source(value, tuple(ir.AffineMap.get(loops, 0, places).results))


def joined_places(source: Source, loops: int) -> Source:
    """Where a source is read once it is `joined`; nothing is built."""
    return Source(source.value, tuple(ir.AffineMap.get(loops, 0, _joined_dims(source)[1]).results))


def _joined_dims(source: Source) -> tuple[list[list[int]], list[ir.AffineExpr]]:
    """The dims that become one, and where each of these is read."""
    sizes = ir.RankedTensorType(source.value.type).shape
    groups: list[list[int]] = []
    places: list[ir.AffineExpr] = []
    for dim, place in enumerate(source.places):
        whole = whole_index(places[-1], place, sizes[dim]) if places else None
        if whole is None:
            groups.append([dim])
            places.append(place)
        else:
            groups[-1].append(dim)
            places[-1] = whole
    return groups, places


def columns_last(source: Source, column: ir.AffineExpr) -> Source:
    """A source whose innermost dim is the one of the columns of a result, if it has one."""
    if column not in source.places[:-1]:
        return source
    moved = source.places.index(column)
    order = [*(dim for dim in range(len(source.places)) if dim != moved), moved]
    output = empty_like(source.value, ir.RankedTensorType(source.value.type).element_type, order)
    transposed = linalg.transpose(source.value, outs=[output], permutation=order).results[0]
    return Source(transposed, tuple(source.places[dim] for dim in order))


def has_quantized_tensors(function: ir.Operation) -> bool:
    """Whether a function takes or computes tensors of quantized elements."""
    values = [*function.regions[0].blocks[0].arguments] if len(function.regions[0].blocks) else []
    if any(map(_is_quantized, values)):
        return True
    return bool(walk_where(function, lambda op: any(map(_is_quantized, op.results)), in_bodies=False))


def read_dequantized(value: ir.Value, indexing: ir.AffineMap, weights: ConstExprs) -> Dequantized | None:
    """How what an op reads of `value` comes from a quantized weight; None if it does not.

    That is one tensor of as many small integers, and others that have far fewer elements; all are known from weights.
    """
    if value in weights:
        return None
    found = _read(value, indexing, weights)
    return found if found is not None and all(source.value in weights for source in found.sources) else None


def read_quantized_data(value: ir.Value, indexing: ir.AffineMap) -> Dequantized | None:
    """Likewise for data: scales and zero points are what an elementwise op reads, however they come about."""
    return _read(value, indexing, None)


def read_known(value: ir.Value, weights: ConstExprs | None, indexing: ir.AffineMap) -> Dequantized | None:
    """How elements that an op reads are computed from others of whatever types; from weights where these are known."""
    reader = _SourceReader(value, indexing.n_dims, weights)
    try:
        element = reader.read(value, tuple(indexing.results))
    except _TooManyOps:
        return None
    return Dequantized(tuple(reader.sources), element)


def has_as_many_elements(value: ir.Value, other: ir.Value) -> bool:
    """Whether two tensors have the same number of elements."""
    return _count(value) == _count(other)


def _read(value: ir.Value, indexing: ir.AffineMap, weights: ConstExprs | None) -> Dequantized | None:
    reader = _SourceReader(value, indexing.n_dims, weights)
    try:
        element = reader.read(value, tuple(indexing.results))
    except _TooManyOps:
        return None
    numbers = range(len(reader.sources))
    quantized = [number for number in numbers if reader.is_quantized(reader.sources[number].value)]
    others = [number for number in numbers if number not in quantized]
    if len(quantized) != 1 or not all(reader.is_small(reader.sources[number].value) for number in others):
        return None
    order = [*quantized, *others]
    return Dequantized(tuple(reader.sources[number] for number in order), _renumbered(element, order))


def widens(dequantized: Dequantized) -> bool:
    """Whether elements are quantized ones converted, and nothing else."""
    element = dequantized.element
    while isinstance(element, Compute) and element.op.name in _WIDENING:
        (element,) = element.operands
    return isinstance(element, Read)


def _renumbered(expression: Expression, order: Sequence[int]) -> Expression:
    """An expression of sources in another order."""
    if isinstance(expression, Read):
        return Read(order.index(expression.source))
    return Compute(expression.op, tuple(_renumbered(operand, order) for operand in expression.operands))


class _TooManyOps(Exception):
    """What is read is no dequantization."""


class _SourceReader:
    """Follows a tensor to what it is computed from: weights, if these are given, or quantized and small tensors."""

    def __init__(self, value: ir.Value, loops: int, weights: ConstExprs | None):
        self.sources: list[Source] = []
        self._count = _count(value)
        self._loops = loops
        self._weights = weights
        self._ops = 0

    def is_quantized(self, value: ir.Value) -> bool:
        """Whether a tensor has quantized elements, as many as the one that is computed from them."""
        return _is_quantized(value) and _count(value) == self._count

    def is_small(self, value: ir.Value) -> bool:
        """Whether a tensor has few enough elements for scales and zero points."""
        count = _count(value)
        if count is None or self._count is None:
            return False
        return count.unknown <= self._count.unknown and count.known * _LEAST_GROUP <= self._count.known

    def read(self, value: ir.Value, places: Places) -> Expression:
        """How the element at `places` is computed from those of the sources, of which there may be more now."""
        self._count_op()
        op = defining_op(value)
        is_read = self._is_source(value) and _is_quantized(value) and Source(value, places).lies_along_loops
        if op is not None and op.name in RESHAPES and _has_known_shape(value) and not is_read:
            before = before_expand if op.name == "tensor.expand_shape" else before_collapse
            return self.read(op.operands[0], self._places(before(op, places)))
        view = structured(op) if not self._is_source(value) else None
        if view is None or len(view.op.results) != 1 or not view.is_elementwise or not _is_simple(view):
            return self._source(value, places)
        inputs = [
            self.read(view.operands[number], self._read_at(view, number, places)) for number in range(view.inputs)
        ]
        return self._expression(view, view.yielded[0], inputs)

    def _is_source(self, value: ir.Value) -> bool:
        """Whether a tensor is read as it is."""
        if self._weights is not None:
            return value in self._weights and (_is_quantized(value) or _count(value) != self._count)
        return _is_quantized(value) or self.is_small(value)

    def _expression(self, view: LinalgOp, value: ir.Value, inputs: Sequence[Expression]) -> Expression:
        """What a body computes, from its inputs."""
        op = defining_op(value)
        if op is None:
            return inputs[ir.BlockArgument(value).arg_number]
        self._count_op()
        return Compute(op, tuple(self._expression(view, operand, inputs) for operand in op.operands))

    def _count_op(self) -> None:
        self._ops += 1
        if self._ops > _MOST_OPS:
            raise _TooManyOps

    def _source(self, value: ir.Value, places: Places) -> Expression:
        source = Source(value, places)
        if source not in self.sources:
            self.sources.append(source)
        return Read(self.sources.index(source))

    def _read_at(self, view: LinalgOp, number: int, places: Places) -> Places:
        """Where an elementwise op reads an input for its result at `places`."""
        if not isinstance(view.operands[number].type, ir.ShapedType):
            return ()
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
    """Whether a body computes an element from those that it is given, and constants."""
    last = terminator(view.body)
    computed = all(op.name.startswith(_SIMPLE) and not op.regions and len(op.results) == 1 for op in view.body_ops)
    return computed and all(_is_known(value, view) for op in (*view.body_ops, last) for value in op.operands)


def _is_known(value: ir.Value, view: LinalgOp) -> bool:
    """Whether a value is an argument of a body, computed in it, or a constant."""
    op = defining_op(value)
    if op is None:
        return value.owner == view.body
    return op.name == "arith.constant" or op.block == view.body


def _is_quantized(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and is_quantized(value.type.element_type)


@dataclass(frozen=True)
class _ElementCount:
    """How many elements a tensor has: the product of the sizes that are known, and how many are not.

    It is asked of what elementwise ops read and compute: unknown sizes are those of the same loops.
    """

    known: int
    unknown: int


def _count(value: ir.Value) -> _ElementCount | None:
    """How many elements a tensor has; None for something else."""
    if not isinstance(value.type, ir.RankedTensorType):
        return None
    kind = ir.RankedTensorType(value.type)
    known = [kind.get_dim_size(dim) for dim in range(kind.rank) if not kind.is_dynamic_dim(dim)]
    return _ElementCount(prod(known), kind.rank - len(known))


def _has_known_shape(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape
