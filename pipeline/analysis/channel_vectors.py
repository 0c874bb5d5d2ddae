"""Vectors: numbers from weights alone, one for each index along a few dims of a tensor of data.

A Vector is an expression, to be reasoned about before there is any IR for it;
`passes/weight_folding/weight_builder.py` builds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.reshapes import reassociation
from pipeline.mlir import defining_op, ir

Arithmetic = Literal["add", "sub", "mul", "div"]


@dataclass(frozen=True)
class Vector:
    """See the module's docstring.

    Attributes:
        dims: the dims of the data that the numbers run along, in the order of the vector's own dims; none for a scalar.
        shape: how many there are along each; never 1.
    """

    dims: tuple[int, ...]
    shape: tuple[int, ...]

    def along(self, dims: Sequence[int]) -> Self:
        """The same numbers for data that has other dims in the place of these."""
        return replace(self, dims=tuple(dims))


@dataclass(frozen=True)
class Number(Vector):
    """A constant of the compiler's own."""

    dims: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    value: float = 1.0


@dataclass(frozen=True)
class Given(Vector):
    """A scalar or tensor of the IR, whose dims of size 1 don't count."""

    value: ir.Value


@dataclass(frozen=True)
class Combined(Vector):
    """Arithmetic on two vectors, one of which has all the dims.

    Attributes:
        operands: the two, each with the own dims of this vector that its dims run along.
    """

    operation: Arithmetic
    operands: tuple[tuple[Vector, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Reshaped(Vector):
    """The numbers of another vector in the same order, with other dims."""

    source: Vector


@dataclass(frozen=True)
class Sliced(Vector):
    """The part of another vector that starts at `offset` along its own dim `axis`."""

    source: Vector
    axis: int
    offset: int


def combine(operation: Arithmetic, left: Vector, right: Vector) -> Vector | None:
    """`left` op `right`; None if that would have more dims than either, and so more numbers."""
    largest = left if len(left.dims) >= len(right.dims) else right
    if {*left.dims, *right.dims} != set(largest.dims):
        return None
    operands = tuple((vector, tuple(largest.dims.index(dim) for dim in vector.dims)) for vector in (left, right))
    return Combined(largest.dims, largest.shape, operation, operands)


def read_vector(value: ir.Value, weights: ConstExprs) -> Vector | None:
    """The vector behind `value`, whose dims are those of `value`; None if it depends on more than weights.

    Broadcasts are looked through, so that the vector has no dims that it does not need.
    """
    op = defining_op(value)
    source = read_vector(op.operands[0], weights) if op is not None and op.name in _READERS else None
    through = _READERS[op.name](op, source) if op is not None and source is not None else None
    return through or _given(value, weights)


def _given(value: ir.Value, weights: ConstExprs) -> Vector | None:
    if value not in weights:
        return None
    if isinstance(value.type, ir.FloatType):
        return Given((), (), value)
    if not isinstance(value.type, ir.RankedTensorType) or not isinstance(value.type.element_type, ir.FloatType):
        return None
    dims = tuple(dim for dim, size in enumerate(value.type.shape) if size != 1)
    return Given(dims, tuple(value.type.shape[dim] for dim in dims), value)


def _read_fill(op: ir.Operation, source: Vector) -> Vector:
    return source


def _read_broadcast(op: ir.Operation, source: Vector) -> Vector:
    added = list(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    kept = [dim for dim in range(ir.RankedTensorType(op.results[0].type).rank) if dim not in added]
    return source.along([kept[dim] for dim in source.dims])


def _read_expand_shape(op: ir.Operation, source: Vector) -> Vector | None:
    return split_dims(source, reassociation(op), ir.RankedTensorType(op.results[0].type).shape)


def _read_collapse_shape(op: ir.Operation, source: Vector) -> Vector | None:
    return merge_dims(source, reassociation(op), ir.RankedTensorType(op.operands[0].type).shape)


_READERS = {
    "linalg.fill": _read_fill,
    "linalg.broadcast": _read_broadcast,
    "tensor.expand_shape": _read_expand_shape,
    "tensor.collapse_shape": _read_collapse_shape,
}


def split_dims(vector: Vector, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Vector | None:
    """The vector for data each of whose dims `i` is split into the dims `groups[i]`, of sizes in `shape`.

    [8] along (1,) -> [2, 4] along (1, 2), for the groups [[0], [1, 2], [3]]
    """
    dims: list[int] = []
    for dim in vector.dims:
        dims += [part for part in groups[dim] if shape[part] != 1]
    sizes = tuple(shape[dim] for dim in dims)
    if any(size < 0 for size in sizes):
        return None
    return _reshaped(vector, tuple(dims), sizes)


def merge_dims(vector: Vector, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Vector | None:
    """The vector for data whose dims `groups[i]`, of sizes in `shape`, are merged into one dim `i`.

    [2, 4] along (1, 2) -> [8] along (1,), for the groups [[0], [1, 2], [3]]

    None if it has a part of a group only.
    """
    owner = {part: dim for dim, group in enumerate(groups) for part in group}
    dims = tuple(dict.fromkeys(owner[dim] for dim in vector.dims))
    parts = [part for dim in dims for part in groups[dim] if shape[part] != 1]
    if parts != list(vector.dims):
        return None
    sizes = []
    for dim in dims:
        size = 1
        for part in groups[dim]:
            size *= shape[part]
        sizes.append(size)
    return _reshaped(vector, dims, tuple(sizes))


def _reshaped(vector: Vector, dims: tuple[int, ...], shape: tuple[int, ...]) -> Vector:
    return vector.along(dims) if shape == vector.shape else Reshaped(dims, shape, vector)
