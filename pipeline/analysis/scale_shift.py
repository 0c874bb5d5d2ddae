"""Affine steps: linalg.generics that add or multiply data by numbers from weights alone, one for each channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.analysis.channel_vectors import Arithmetic, Given, Number, Vector, combine, read_vector
from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.indexing_maps import is_identity, loop_of
from pipeline.ir.linalg_op import structured
from pipeline.mlir import defining_op, ir

_ARITHMETIC: dict[str, Arithmetic] = {
    "arith.addf": "add",
    "arith.subf": "sub",
    "arith.mulf": "mul",
    "arith.divf": "div",
}
_CASTS = ("arith.extf", "arith.truncf")


@dataclass(frozen=True)
class VectorStep:
    """data -> data op vector."""

    operation: Arithmetic
    vector: Vector

    @property
    def scales(self) -> bool:
        """Whether it multiplies or divides."""
        return self.operation in ("mul", "div")


@dataclass(frozen=True)
class Affine:
    """y = x * scale + shift; a missing one does nothing.

    The arithmetic between scales and shifts is what these passes re-associate; that on the data keeps its shape.

    Attributes:
        bits: the width of the result's elements; 0 for no step.
    """

    scale: Vector | None = None
    shift: Vector | None = None
    bits: int = 0

    def after(self, step: VectorStep) -> Affine | None:
        """This affine of what `step` makes of x, as an affine of x; None if its vectors run along different dims."""
        if step.scales:
            scale = combine(step.operation, self.scale or Number(), step.vector)
            if self.scale is None and step.operation == "mul":
                scale = step.vector
            return replace(self, scale=scale) if scale is not None else None
        scaled = step.vector if self.scale is None else combine("mul", step.vector, self.scale)
        if scaled is None:
            return None
        if self.shift is None:
            shift = scaled if step.operation == "add" else combine("sub", Number(value=0.0), scaled)
        else:
            shift = combine(step.operation, self.shift, scaled)
        return replace(self, shift=shift) if shift is not None else None


@dataclass(frozen=True)
class Elementwise:
    """A linalg.generic that takes steps on one operand of data, and nothing else; without steps, a cast.

    Attributes:
        op: the generic.
        operand: the number of the operand of data.
        steps: in the order in which they are taken.
    """

    op: ir.Operation
    operand: int
    steps: tuple[VectorStep, ...]

    @property
    def data(self) -> ir.Value:
        """What the steps are taken on."""
        return self.op.operands[self.operand]

    @property
    def bits(self) -> int:
        """The width of the result's elements."""
        return _bits(ir.ShapedType(self.op.results[0].type).element_type)


def read_elementwise(op: ir.Operation | None, weights: ConstExprs) -> Elementwise | None:
    """`op` as steps on data; None if it is something else."""
    if op is None or op.name != "linalg.generic" or len(op.results) != 1 or op.results[0] in weights:
        return None
    view = structured(op)
    if view is None or any(view.reductions) or not is_identity(view.maps[-1]):
        return None
    reader = _ElementwiseBody(op, view.maps, weights)
    value = view.yielded[0]
    steps: list[VectorStep] = []
    while (inner := defining_op(value)) is not None:
        if inner.name in _CASTS:
            if _bits(inner.results[0].type) < _bits(view.yielded[0].type):
                return None  # it rounds to fewer bits than the result has
            value = inner.operands[0]
            continue
        split = reader.split(inner)
        if split is None:
            return None
        value, step = split
        steps.append(step)
    number = ir.BlockArgument(value).arg_number
    if value.owner != view.body or number == len(op.operands) - 1 or not is_identity(view.maps[number]):
        return None
    if not isinstance(value.type, ir.FloatType):
        return None
    return Elementwise(op, number, tuple(reversed(steps)))


@dataclass(frozen=True)
class Chain:
    """Elementwise ops each of which reads only the one before it, and is read only by the one after it.

    Attributes:
        links: the ops, last first.
        affine: what they do to the data together.
    """

    links: tuple[Elementwise, ...]
    affine: Affine

    @property
    def last(self) -> Elementwise:
        """The op whose result is that of the chain."""
        return self.links[0]

    @property
    def data(self) -> ir.Value:
        """What the chain reads."""
        return self.links[-1].data

    @property
    def steps(self) -> list[VectorStep]:
        """All steps, in the order in which they are taken."""
        return [step for link in reversed(self.links) for step in link.steps]

    @property
    def work(self) -> str:
        """How much is done for each element, in words."""
        return f"{len(self.steps)} operation{'s' if len(self.steps) != 1 else ''} per element"

    @property
    def saved(self) -> int:
        """How many operations per element less the affine needs."""
        return len(self.steps) - (self.affine.scale is not None) - (self.affine.shift is not None)

    @property
    def reads_weights(self) -> bool:
        """Whether a step is more than arithmetic with a constant."""
        return any(not isinstance(step.vector, Number) for step in self.steps)


def read_chain(last: Elementwise | None, weights: ConstExprs) -> Chain | None:
    """The longest chain that ends with `last` and is one affine; None unless it ends there."""
    if last is None or not is_last(last, weights):
        return None
    affine = compose(Affine(), last)
    if affine is None:
        return None
    links = [last]
    while len(list(links[-1].data.uses)) == 1:
        link = read_elementwise(defining_op(links[-1].data), weights)
        longer = compose(affine, link) if link is not None else None
        if link is None or longer is None:
            break
        links.append(link)
        affine = longer
    return Chain(tuple(links), affine)


def compose(affine: Affine, elementwise: Elementwise) -> Affine | None:
    """`affine` of what `elementwise` makes of its data, as an affine of that data; None if it is none.

    So it is where `elementwise` rounds to fewer bits than the affine's result has: y = x.half().float() is no x.
    """
    if elementwise.bits < affine.bits:
        return None
    composed: Affine | None = replace(affine, bits=affine.bits or elementwise.bits)
    for step in reversed(elementwise.steps):
        composed = composed and composed.after(step)
    return composed


def is_last(elementwise: Elementwise, weights: ConstExprs) -> bool:
    """Whether no further steps are taken on the result, or something else reads it, too."""
    uses = list(elementwise.op.results[0].uses)
    following = read_elementwise(uses[0].owner.operation, weights) if len(uses) == 1 else None
    return following is None or following.operand != uses[0].operand_number


def _bits(kind: ir.Type) -> int:
    return int(kind.width)


class _ElementwiseBody:
    """The body of an elementwise generic; tells data from vectors."""

    def __init__(self, op: ir.Operation, maps: Sequence[ir.AffineMap], weights: ConstExprs):
        self._op = op
        self._maps = maps
        self._weights = weights
        self._block = op.regions[0].blocks[0]

    def split(self, inner: ir.Operation) -> tuple[ir.Value, VectorStep] | None:
        """(data, step) of an arithmetic op with a vector on one side."""
        operation = _ARITHMETIC.get(inner.name)
        if operation is None:
            return None
        left, right = inner.operands
        vector = self._vector(right)
        if vector is not None:
            return left, VectorStep(operation, vector)
        vector = self._vector(left) if operation in ("add", "mul") else None
        return (right, VectorStep(operation, vector)) if vector is not None else None

    def _vector(self, value: ir.Value) -> Vector | None:
        producer = defining_op(value)
        if producer is not None and producer.name in _CASTS:
            return self._vector(producer.operands[0])
        if producer is not None and producer.name == "arith.constant":
            return Number(value=ir.FloatAttr(producer.attributes["value"]).value)
        if producer is not None or value.owner != self._block:
            return Given((), (), value) if value in self._weights else None
        number = ir.BlockArgument(value).arg_number
        if number == len(self._op.operands) - 1:
            return None
        vector = read_vector(self._op.operands[number], self._weights)
        return vector and along_loops(vector, self._maps[number])


def along_loops(vector: Vector, indexing: ir.AffineMap) -> Vector | None:
    """The vector, whose dims are those of an operand, along the loops of the op; None if an index is computed."""
    loops = [loop_of(indexing.results[dim]) for dim in vector.dims]
    return vector.along([loop for loop in loops if loop is not None]) if None not in loops else None
