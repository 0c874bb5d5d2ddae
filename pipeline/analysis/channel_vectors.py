"""Vectors: numbers from weights alone, one for each index along a few dims of a tensor of data.

A Vector is an expression, to be reasoned about before there is any IR for it;
`analysis/vector_reading.py` finds it in the IR, `passes/weight_folding/weight_builder.py` builds it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from pipeline.ir.indexing_maps import loop_of
from pipeline.mlir import ir

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
class Applied(Vector):
    """What ops of a linalg op's body make of other vectors: a function of them, such as the root of a variance.

    Attributes:
        value: the value of the body.
        operands: the values of the body that it is computed from, each with its vector and the own dims of this vector
            that the dims of that run along; constants are not among them.
    """

    value: ir.Value
    operands: tuple[tuple[ir.Value, Vector, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Reshaped(Vector):
    """The numbers of another vector in the same order, with other dims."""

    source: Vector


@dataclass(frozen=True)
class Repeated(Vector):
    """The numbers of another vector again and again, along dims that it does not have.

    Attributes:
        axes: the own dims of this vector that those of the source run along.
    """

    source: Vector
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Sliced(Vector):
    """The part of another vector that starts at `offset` along its own dim `axis`."""

    source: Vector
    axis: int
    offset: int


def combine(operation: Arithmetic, left: Vector, right: Vector) -> Vector | None:
    """`left` op `right`; None if that would have more dims than either, and so more numbers."""
    if isinstance(left, Number) and isinstance(right, Number) and (operation != "div" or right.value):
        return Number(value=_OF_NUMBERS[operation](left.value, right.value))
    largest = largest_of(left, right)
    if largest is None:
        return None
    operands = tuple((vector, own_dims(largest, vector)) for vector in (left, right))
    return Combined(largest.dims, largest.shape, operation, operands)


_OF_NUMBERS: dict[Arithmetic, Callable[[float, float], float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
}


def largest_of(*vectors: Vector) -> Vector | None:
    """The one of the vectors that has all dims of the others; None if there is none."""
    largest = max(vectors, key=lambda vector: len(vector.dims))
    return largest if all(set(vector.dims) <= set(largest.dims) for vector in vectors) else None


def own_dims(largest: Vector, vector: Vector) -> tuple[int, ...]:
    """The own dims of `largest` that the dims of another vector run along."""
    return tuple(largest.dims.index(dim) for dim in vector.dims)


def along_loops(vector: Vector, indexing: ir.AffineMap) -> Vector | None:
    """The vector, whose dims are those of an operand, along the loops of the op; None if an index is computed."""
    loops = [loop_of(indexing.results[dim]) for dim in vector.dims]
    return vector.along([loop for loop in loops if loop is not None]) if None not in loops else None


def along_operand(vector: Vector, indexing: ir.AffineMap) -> Vector | None:
    """The vector, whose dims are loops of an op, along the dims of an operand; None if that has not all of them."""
    loops = [loop_of(expression) for expression in indexing.results]
    return vector.along([loops.index(loop) for loop in vector.dims]) if set(vector.dims) <= set(loops) else None


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

    If it has a part of a group only, its numbers are repeated along the others; None if their sizes are unknown.
    """
    owner = {part: dim for dim, group in enumerate(groups) for part in group}
    dims = tuple(dict.fromkeys(owner[dim] for dim in vector.dims))
    parts = [part for dim in dims for part in groups[dim] if shape[part] != 1]
    if parts != list(vector.dims):
        if any(shape[part] < 0 for part in parts) or list(vector.dims) != [
            part for part in parts if part in vector.dims
        ]:
            return None
        axes = tuple(parts.index(dim) for dim in vector.dims)
        vector = Repeated(tuple(parts), tuple(shape[part] for part in parts), vector, axes)
    sizes = []
    for dim in dims:
        size = 1
        for part in groups[dim]:
            size *= shape[part]
        sizes.append(size)
    return _reshaped(vector, dims, tuple(sizes))


def _reshaped(vector: Vector, dims: tuple[int, ...], shape: tuple[int, ...]) -> Vector:
    return vector.along(dims) if shape == vector.shape else Reshaped(dims, shape, vector)
