"""Finds the vectors of `channel_vectors` in the IR: what comes from weights alone, whichever ops compute it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from pipeline.analysis.channel_vectors import (
    Applied,
    Arithmetic,
    Given,
    Number,
    Vector,
    along_loops,
    along_operand,
    combine,
    largest_of,
    merge_dims,
    own_dims,
    split_dims,
)
from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.reshapes import reassociation
from pipeline.ir.rewriting import is_pure
from pipeline.mlir import defining_op, ir

ARITHMETIC: dict[str, Arithmetic] = {
    "arith.addf": "add",
    "arith.subf": "sub",
    "arith.mulf": "mul",
    "arith.divf": "div",
}
FLOAT_CASTS = ("arith.extf", "arith.truncf")

#: Those that are worked out on constants; what they raise is left to the program.
_OF_NUMBERS: dict[str, Callable[..., float]] = {
    "arith.negf": operator.neg,
    "arith.maximumf": max,
    "arith.minimumf": min,
    "math.absf": abs,
    "math.sqrt": math.sqrt,
    "math.rsqrt": lambda x: 1 / math.sqrt(x),
    "math.powf": math.pow,
}


def read_vector(value: ir.Value, weights: ConstExprs) -> Vector | None:
    """The vector behind `value`, whose dims are those of `value`; None if it depends on more than weights.

    Broadcasts are looked through, so that the vector has no dims that it does not need. What is computed at the size
    of a broadcast is computed at that of the vector.
    """
    if not weights.knows(value):
        return None
    if value not in weights.vectors:
        weights.vectors[value] = _read(value, weights)
    return weights.vectors[value]


def _read(value: ir.Value, weights: ConstExprs) -> Vector | None:
    given = _given(value, weights)
    through = _read_through(value, weights)
    if through is None or (given is not None and _is_computed(through) and len(through.dims) >= len(given.dims)):
        return given
    return through


def _is_computed(vector: Vector) -> bool:
    return not isinstance(vector, (Given, Number))


def _given(value: ir.Value, weights: ConstExprs) -> Vector | None:
    if value not in weights:
        return None
    if isinstance(value.type, ir.FloatType):
        return _number(value) or Given((), (), value)
    if not isinstance(value.type, ir.RankedTensorType) or not isinstance(value.type.element_type, ir.FloatType):
        return None
    dims = tuple(dim for dim, size in enumerate(value.type.shape) if size != 1)
    return _number(value) or Given(dims, tuple(value.type.shape[dim] for dim in dims), value)


def _number(value: ir.Value) -> Number | None:
    """A constant, or a tensor of one number again and again."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseFPElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return Number(value=attribute.value) if isinstance(attribute, ir.FloatAttr) else None


def _read_through(value: ir.Value, weights: ConstExprs) -> Vector | None:
    """The vector of a value by that of what it is made of."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name.startswith("linalg."):
        return _read_elementwise(op, value, weights)
    if op.name not in ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast"):
        return None
    source = read_vector(op.operands[0], weights)
    if source is None or op.name == "tensor.cast":
        return source
    if op.name == "tensor.expand_shape":
        return split_dims(source, reassociation(op), ir.RankedTensorType(op.results[0].type).shape)
    return merge_dims(source, reassociation(op), ir.RankedTensorType(op.operands[0].type).shape)


def _read_elementwise(op: ir.Operation, value: ir.Value, weights: ConstExprs) -> Vector | None:
    view = any_structured(op)
    if view is None or not view.is_elementwise:
        return None
    result = ir.OpResult(value).result_number
    vector = BodyVectors(view, weights).read(view.yielded[result])
    return vector and along_operand(vector, view.maps[view.inputs + result])


class BodyVectors:
    """The vectors among the values of a linalg op's body, along its loops."""

    def __init__(self, view: LinalgOp, weights: ConstExprs):
        self._view = view
        self._weights = weights
        self._known: dict[ir.Value, Vector | None] = {}

    def read(self, value: ir.Value) -> Vector | None:
        """The vector that a value of the body is an element of; None if it depends on more than weights."""
        if value not in self._known:
            self._known[value] = self._read(value)
        return self._known[value]

    def _read(self, value: ir.Value) -> Vector | None:
        op = defining_op(value)
        if op is None and value.owner == self._view.body:
            number = ir.BlockArgument(value).arg_number
            vector = read_vector(self._view.operands[number], self._weights) if number < self._view.inputs else None
            return vector and along_loops(vector, self._view.maps[number])
        if op is None or op.block != self._view.body:
            return read_vector(value, self._weights)
        if not isinstance(value.type, ir.FloatType):
            return None
        if op.name == "arith.constant":
            return _number(value)
        if op.name in FLOAT_CASTS:
            return self.read(op.operands[0])
        if op.name in ARITHMETIC:
            left, right = map(self.read, op.operands)
            return combine(ARITHMETIC[op.name], left, right) if left is not None and right is not None else None
        return self._applied(op)

    def _applied(self, op: ir.Operation) -> Vector | None:
        """A function of vectors."""
        leaves: dict[ir.Value, Vector] = {}
        if not self._gather(op, leaves):
            return None
        number = _of_numbers(op, leaves)
        if number is not None:
            return number
        largest = largest_of(*leaves.values()) if leaves else Number()
        if largest is None:
            return None
        operands = tuple((leaf, vector, own_dims(largest, vector)) for leaf, vector in leaves.items())
        return Applied(largest.dims, largest.shape, op.results[0], operands)

    def _gather(self, op: ir.Operation, leaves: dict[ir.Value, Vector]) -> bool:
        """Collects the vectors that an op reads, through ops that make no floats; whether it reads nothing else."""
        if not is_pure(op) or op.name == "linalg.index" or len(op.regions) or len(op.results) != 1:
            return False
        for operand in op.operands:
            if isinstance(operand.type, ir.FloatType):
                vector = self.read(operand)
                if vector is None:
                    return False
                leaves[operand] = vector
            elif not self._is_of_body(operand) or not self._gather(operand.owner.operation, leaves):
                return False
        return True

    def _is_of_body(self, value: ir.Value) -> bool:
        """Whether the body computes a value, or it is a constant."""
        op = defining_op(value)
        return op is not None and (op.block == self._view.body or op.name == "arith.constant")


def _of_numbers(op: ir.Operation, leaves: dict[ir.Value, Vector]) -> Number | None:
    """What an op makes of constants alone."""
    numbers = [vector.value for vector in map(leaves.get, op.operands) if isinstance(vector, Number)]
    if op.name not in _OF_NUMBERS or len(numbers) != len(op.operands):
        return None
    try:
        return Number(value=_OF_NUMBERS[op.name](*numbers))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
