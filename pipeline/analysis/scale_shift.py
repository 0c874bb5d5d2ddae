"""Affine steps: what bodies of linalg ops add to data or multiply it by, all from weights alone, one for each channel.

Steps are read whichever way the arithmetic is cut into ops: a body may take one of them or all, and compute on the way
what they add and multiply; the steps may be all that it does, or what it begins or ends with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pipeline.analysis.channel_vectors import Number, Vector, along_loops, along_operand, combine
from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.product_body import sums_products
from pipeline.analysis.vector_reading import ARITHMETIC, FLOAT_CASTS, BodyVectors
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.mlir import defining_op, has_one_use, ir, terminator

#: What a step does with data and a vector; `rsub` takes the data from the vector, `neg` looks at the data alone.
Operation = Literal["add", "sub", "mul", "div", "rsub", "neg"]


@dataclass(frozen=True)
class VectorStep:
    """data -> data op vector."""

    operation: Operation
    vector: Vector

    @property
    def scales(self) -> bool:
        """Whether it multiplies or divides."""
        return self.operation in ("mul", "div")

    @property
    def shifts(self) -> bool:
        """Whether it adds or subtracts."""
        return self.operation in ("add", "sub", "rsub")


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
        if step.operation == "neg":
            return self.after(VectorStep("mul", Number(value=-1.0)))
        if step.operation == "rsub":
            added = self.after(VectorStep("add", step.vector))
            return added and added.after(VectorStep("neg", Number()))
        if step.operation in ("mul", "div"):
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

    def each(self, change: Callable[[Vector], Vector | None]) -> Affine | None:
        """The affine with each of its vectors changed; None where one cannot be."""
        scale, shift = self.scale and change(self.scale), self.shift and change(self.shift)
        if (scale is None) != (self.scale is None) or (shift is None) != (self.shift is None):
            return None
        return replace(self, scale=scale, shift=shift)


@dataclass(frozen=True)
class Elementwise:
    """Steps that the body of a linalg op takes one after the other, and that nothing else of it looks into.

    Attributes:
        view: the op.
        start, end: the values of the body before and after the steps.
        steps: in the order in which they are taken, along the op's loops; none of what only casts or moves elements.
    """

    view: LinalgOp
    start: ir.Value
    end: ir.Value
    steps: tuple[VectorStep, ...]

    @property
    def op(self) -> ir.Operation:
        """The op."""
        return self.view.op

    @property
    def operand(self) -> int | None:
        """The number of the operand that the steps are taken on; None if the body computes what they are taken on."""
        return None if defining_op(self.start) is not None else ir.BlockArgument(self.start).arg_number

    @property
    def data(self) -> ir.Value:
        """The operand that the steps are taken on."""
        assert self.operand is not None
        return self.op.operands[self.operand]

    @property
    def is_at_end(self) -> bool:
        """Whether what they give is the op's only result, each element of which is computed once."""
        return _is_yielded(self.end, self.view) and len(self.op.results) == 1 and self.view.is_elementwise

    @property
    def is_whole(self) -> bool:
        """Whether the op does nothing else."""
        return self.operand is not None and self.is_at_end

    @property
    def is_plain(self) -> bool:
        """Whether the op does nothing else, and leaves each element at its place."""
        return self.is_whole and self.view.maps[self.operand or 0] == self.view.maps[-1]

    @property
    def only_negates(self) -> bool:
        """Whether the steps are negations, which are left to what follows, such as a sigmoid."""
        return bool(self.steps) and all(step.operation == "neg" for step in self.steps)

    @property
    def bits(self) -> int:
        """The width of what the steps give."""
        return int(self.end.type.width)

    def ops(self) -> list[ir.Operation]:
        """The ops of the body that take the steps, and casts between them."""
        found, value = list[ir.Operation](), self.start
        while value != self.end:
            found.append(next(iter(value.uses)).owner.operation)
            value = found[-1].results[0]
        return found

    def at_data(self, affine: Affine) -> Affine | None:
        """An affine along the loops as one along the dims of the data; None if the data has not all of them."""
        indexing = self.view.maps[self.operand or 0]
        return affine.each(lambda vector: along_operand(vector, indexing))

    def at_result(self, affine: Affine) -> Affine | None:
        """An affine along the loops as one along the dims of the result."""
        return affine.each(lambda vector: along_operand(vector, self.view.maps[-1]))

    def from_data(self, affine: Affine) -> Affine | None:
        """An affine along the dims of the data as one along the loops; None if an index is computed."""
        return affine.each(lambda vector: along_loops(vector, self.view.maps[self.operand or 0]))

    def from_result(self, affine: Affine) -> Affine | None:
        """An affine along the dims of the result as one along the loops."""
        return affine.each(lambda vector: along_loops(vector, self.view.maps[-1]))


def read_elementwise(op: ir.Operation | None, weights: ConstExprs) -> Elementwise | None:
    """`op` as steps on one operand of data and nothing else; without steps, it casts or moves; None for others."""
    if op is None or not op.name.startswith("linalg.") or len(op.results) != 1 or weights.knows(op.results[0]):
        return None
    view = any_structured(op)
    return None if view is None else _Body(view, weights).whole()


def read_segments(op: ir.Operation, weights: ConstExprs) -> list[Elementwise]:
    """The steps of an op's body: those of one operand after the other, then those of what the body computes."""
    if not op.name.startswith("linalg.") or not op.regions or any(map(weights.knows, op.results)):
        return []
    view = any_structured(op)
    if view is None:
        return []
    body = _Body(view, weights)
    whole = body.whole()
    if whole is not None:
        return [whole]
    if op.name != "linalg.generic" or (any(view.reductions) and sums_products(view)):
        return []
    return list(body.segments())


@dataclass(frozen=True)
class Chain:
    """Elementwise ops each of which reads only the one before it, and is read only by the one after it.

    Attributes:
        links: the ops, last first; the last one may do more than these steps.
        affine: what they do to the data together, along the loops of the last one.
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
    if last is None or last.only_negates or not is_last(last, weights):
        return None
    affine = _taken(Affine(), last)
    total = affine and last.at_data(affine) if last.operand is not None else None
    if affine is None or (last.is_whole and not last.is_plain and not last.steps):
        return None
    links = [last]
    while total is not None and has_one_use(links[-1].data):
        link = read_elementwise(defining_op(links[-1].data), weights)
        total = compose(total, link) if link is not None and link.is_plain else None
        longer = total and last.from_data(total)
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
    loops = elementwise.from_result(affine)
    composed = loops and _taken(loops, elementwise)
    return composed and elementwise.at_data(composed)


def own_affine(elementwise: Elementwise) -> Affine | None:
    """What the steps do, along the dims of their data; None if it is no affine."""
    affine = _taken(Affine(), elementwise)
    return affine and elementwise.at_data(affine)


def _taken(affine: Affine, elementwise: Elementwise) -> Affine | None:
    """`affine` of what the steps give, as an affine of what they are taken on; all along the loops."""
    composed: Affine | None = replace(affine, bits=affine.bits or elementwise.bits)
    for step in reversed(elementwise.steps):
        composed = composed and composed.after(step)
    return composed


def is_last(elementwise: Elementwise, weights: ConstExprs) -> bool:
    """Whether no further steps are taken on the result, or something else reads it, too."""
    uses = list(elementwise.op.results[0].uses) if elementwise.is_at_end else []
    if len(uses) != 1:
        return True
    following = read_prefix(uses[0].owner.operation, uses[0].operand_number, weights)
    if following is None or (following.is_whole and not following.is_plain and not following.steps):
        return True
    return following.only_negates and is_last(following, weights)


def read_prefix(op: ir.Operation, number: int, weights: ConstExprs) -> Elementwise | None:
    """The steps that an op begins with on its operand `number`; None if it takes none, and more than moves it."""
    whole = read_elementwise(op, weights)
    if whole is not None:
        return whole if whole.operand == number else None
    found = (segment for segment in read_segments(op, weights) if segment.operand == number)
    return next(found, None)


def _is_yielded(value: ir.Value, view: LinalgOp) -> bool:
    """Whether a body hands out a value, and does nothing else with it."""
    uses = list(value.uses)
    return len(uses) == 1 and uses[0].owner.operation == terminator(view.body)


class _Body:
    """The body of a linalg op; tells data from vectors."""

    def __init__(self, view: LinalgOp, weights: ConstExprs):
        self._view = view
        self._vectors = BodyVectors(view, weights)

    def is_data(self, value: ir.Value) -> bool:
        """Whether a value of the body is more than a number from weights alone."""
        return not isinstance(value.type, ir.FloatType) or self._vectors.read(value) is None

    def whole(self) -> Elementwise | None:
        """The steps on the one operand of data, if the op does nothing else."""
        view = self._view
        if len(view.op.results) != 1 or not view.is_elementwise:
            return None
        data = [argument for argument in view.body.arguments if list(argument.uses) and self.is_data(argument)]
        found = self.followed(data[0]) if len(data) == 1 else None
        return found if found is not None and found.is_whole else None

    def segments(self) -> Iterator[Elementwise]:
        """The longest segments of at least one step."""
        inside: set[ir.Value] = set()
        inputs = list(self._view.body.arguments)[: self._view.inputs]
        for start in (*inputs, *(result for op in self._view.body_ops for result in op.results)):
            if start in inside or not isinstance(start.type, ir.FloatType) or not self.is_data(start):
                continue
            found = self.followed(start)
            inside.update(self._passed)
            if found is not None and found.steps:
                yield found

    def followed(self, start: ir.Value) -> Elementwise | None:
        """The steps that are taken on a value, which only they read; None if it is no float."""
        self._passed: list[ir.Value] = []
        if not isinstance(start.type, ir.FloatType):
            return None
        value, steps, narrowest, end = start, list[VectorStep](), math.inf, start
        count = 0
        while (following := self._following(value)) is not None:
            op, taken = following
            width = int(op.results[0].type.width)
            if op.name == "arith.truncf":
                narrowest = min(narrowest, width)
            if width > narrowest or not self._are_along(start, taken):
                break  # what follows has more bits than some value before; or it is different for one element of data
            value = op.results[0]
            steps += taken
            self._passed.append(value)
            if not taken or taken[-1].operation != "neg":
                end, count = value, len(steps)
        if _is_yielded(value, self._view):
            end, count = value, len(steps)
        return Elementwise(self._view, start, end, tuple(steps[:count]))

    def _are_along(self, start: ir.Value, steps: list[VectorStep]) -> bool:
        """Whether steps do the same to an element of data wherever it is read."""
        if defining_op(start) is not None:
            return True
        indexing = self._view.maps[ir.BlockArgument(start).arg_number]
        return all(along_operand(step.vector, indexing) is not None for step in steps)

    def _following(self, value: ir.Value) -> tuple[ir.Operation, list[VectorStep]] | None:
        """The only op that reads a value, and what it does with it, if that is steps; none for a cast."""
        uses = list(value.uses)
        op = uses[0].owner.operation if len(uses) == 1 else None
        if op is None or op.block != self._view.body or not op.results:
            return None
        if op.name in FLOAT_CASTS:
            return op, []
        steps = self._steps(op, uses[0].operand_number)
        return None if steps is None else (op, steps)

    def _steps(self, op: ir.Operation, number: int) -> list[VectorStep] | None:
        """What an op does with its operand `number`, if all others are vectors."""
        if op.name == "arith.negf":
            return [VectorStep("neg", Number())]
        if op.name not in (*ARITHMETIC, "math.fma"):
            return None
        others = [self._vectors.read(operand) for place, operand in enumerate(op.operands) if place != number]
        vectors = [vector for vector in others if vector is not None]
        if len(vectors) != len(others):
            return None
        if op.name == "math.fma":
            return _steps_of_fma(number, vectors)
        operation = ARITHMETIC[op.name]
        if number == 0 or operation in ("add", "mul"):
            return [VectorStep(operation, vectors[0])]
        return [VectorStep("rsub", vectors[0])] if operation == "sub" else None


def _steps_of_fma(number: int, others: list[Vector]) -> list[VectorStep] | None:
    """fma(a, b, c) = a * b + c, of which one is data."""
    if number < 2:
        return [VectorStep("mul", others[0]), VectorStep("add", others[1])]
    product = combine("mul", *others)
    return None if product is None else [VectorStep("add", product)]
