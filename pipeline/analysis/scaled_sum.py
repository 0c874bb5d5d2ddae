"""Sums of products of dequantized factors: what of a factor is the same for many terms of a sum, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from pipeline.analysis.product_body import (
    added_value,
    arguments_behind,
    dequantized_input,
    product_of_integers,
    sums_products,
)
from pipeline.ir.indexing_maps import moves
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.nibbles import Nibble, nibble_of
from pipeline.mlir import defining_op, ir

#: Ops that are undone on a sum of their results; what is quantized is their first operand, or any of the two.
_LEFT, _ANY = ("arith.subf", "arith.divf"), ("arith.mulf", "arith.addf")

#: Those for which data is summed up, and of how many rows at most: a row takes as long as a vector of weights.
_SHIFTS, _FEW = ("arith.subf", "arith.addf"), 2


@dataclass(frozen=True)
class ScaledSum:
    """A body out + data * factor, whose factor is core * scale + shift.

    sum(data * (core * scale + shift))  =  sum(data * core) * scale + sum(data) * shift

    Attributes:
        data, core: the values of the body that change from term to term.
        steps: the ops that compute the factor from the core, first the one that takes that.
        weight: the number of the input that is quantized.
        depth: within how many of the loops of the sum the scale and the shift change, outermost first.
        nibble: the number of four bits that the core is computed from, if it is.
        entry: what of the core is computed from that number alone; None if nothing is.
    """

    data: ir.Value
    core: ir.Value
    steps: tuple[ir.Operation, ...]
    weight: int
    depth: int
    nibble: Nibble | None
    entry: ir.Value | None

    @property
    def has_shift(self) -> bool:
        """Whether data has to be summed up, too."""
        return any(op.name in _SHIFTS for op in self.steps)


def scaled_sum_of(view: LinalgOp) -> ScaledSum | None:
    """How to compute a sum of products with a dequantized factor; None for others, and if there is nothing to gain."""
    found = dequantized_sum_of(view)
    if found is None or not (found.steps or found.nibble is not None or rounding_of(found.core) is not None):
        return None
    return found


def dequantized_sum_of(view: LinalgOp) -> ScaledSum | None:
    """How to read a sum of products with a dequantized factor, which may have neither a scale nor a shift."""
    if len(view.outputs) != 1 or not isinstance(view.yielded[0].type, ir.F32Type) or not sums_products(view):
        return None
    added, nibble = added_value(view), nibble_of(view)
    if added is None or product_of_integers(added, view) is not None:
        return None
    if nibble is not None and nibble.loop != view.summed[-1]:
        return None
    inner = len(view.summed) - (1 if nibble is None else 2)
    for factor, data in _factors(view):
        weight = dequantized_input(factor, view)
        if weight is None or (nibble is not None and weight != nibble.operand):
            continue
        steps, depth = list[ir.Operation](), 0
        core = factor
        while (peeled := _outermost(core, view.body.arguments[weight])) is not None:
            op, inside, other = peeled
            within = depth_of(other, view)
            if within > inner or (nibble is not None and not arguments_behind(other)):
                break  # what is constant is in a table of all numbers of four bits
            if op.name in _SHIFTS and not is_for_few_rows(view, weight):
                break
            steps, depth, core = [op, *steps], max(depth, within), inside
        return ScaledSum(data, core, tuple(steps), weight, depth, nibble, _entry(core, nibble, view))
    return None


def rounding_of(value: ir.Value) -> ir.Operation | None:
    """The op that rounds to 16 bits what a value in more bits is; None if it was not rounded."""
    widening = defining_op(value)
    rounding = None if widening is None or widening.name != "arith.extf" else defining_op(widening.operands[0])
    return rounding if rounding is not None and rounding.name == "arith.truncf" else None


def inputs_behind(value: ir.Value, view: LinalgOp) -> list[int]:
    """The numbers of the operands whose elements a value is computed from; it may come from outside of a body."""
    arguments = arguments_behind(value)
    return [number for number, argument in enumerate(view.body.arguments) if argument in arguments]


def is_for_few_rows(view: LinalgOp, weight: int) -> bool:
    """Whether few rows of data share each element of a weight."""
    shared = [loop for loop in range(view.loops) if not view.reductions[loop]]
    sizes = [view.sizes[loop] for loop in shared if moves(view.maps[weight], loop) == "fixed"]
    return None not in sizes and prod(size or 0 for size in sizes) <= _FEW


def _entry(core: ir.Value, nibble: Nibble | None, view: LinalgOp) -> ir.Value | None:
    """What of a core is computed from a number of four bits alone, if that has 32 bits."""
    if nibble is None:
        return None
    weight, value = view.body.arguments[nibble.operand], core
    while inputs_behind(value, view) != [nibble.operand]:
        op = defining_op(value)
        behind = [] if op is None else [operand for operand in op.operands if weight in arguments_behind(operand)]
        if len(behind) != 1:
            return None
        value = behind[0]
    return value if str(value.type) in ("f32", "i32") else None


def _factors(view: LinalgOp) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Both factors of the body's product, each with the other one; that of the second input first."""
    last = defining_op(view.yielded[0])
    assert last is not None
    (product,) = [value for value in last.operands if value != view.body.arguments[view.inputs]]
    left, right = product.owner.operands
    second = view.body.arguments[1] in arguments_behind(right)
    yield from [(right, left), (left, right)] if second else [(left, right), (right, left)]


def _outermost(value: ir.Value, weight: ir.Value) -> tuple[ir.Operation, ir.Value, ir.Value] | None:
    """The op that computes a value, its operand that depends on the weight, and the one that does not."""
    op = defining_op(value)
    if op is None or op.name not in (*_LEFT, *_ANY):
        return None
    left, right = op.operands
    depends = [weight in arguments_behind(operand) for operand in (left, right)]
    if depends == [True, False]:
        return op, left, right
    return (op, right, left) if depends == [False, True] and op.name in _ANY else None


def depth_of(value: ir.Value, view: LinalgOp) -> int:
    """Within how many loops of the sum a value of the body changes."""
    maps = [view.maps[number] for number in inputs_behind(value, view)]
    changing = [
        depth for depth, loop in enumerate(view.summed, 1) if any(moves(indexing, loop) != "fixed" for indexing in maps)
    ]
    return max(changing, default=0)
