"""Which integers the elements of a tensor can be, by what computes them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.reshapes import RESHAPES
from pipeline.mlir import defining_op, ir

_EXTENSIONS = ("arith.extsi", "arith.trunci", "arith.fptosi", "arith.sitofp")
_FROM_INTEGERS = ("arith.sitofp", "arith.uitofp")
_ROUNDINGS = ("math.roundeven", "math.round", "math.floor", "math.ceil", "math.trunc", "math.rint")
_LARGER = ("arith.maximumf", "arith.maxnumf", "arith.maxsi")
_SMALLER = ("arith.minimumf", "arith.minnumf", "arith.minsi")

#: How many binary digits floats have.
_DIGITS = {"bf16": 8, "f16": 11, "f32": 24}

#: Of more ops ranges are no longer computed.
_MOST_OPS = 200


@dataclass(frozen=True)
class ElementRange:
    """From the least to the most number, both included."""

    least: float
    most: float

    def lies_in(self, least: float, most: float) -> bool:
        """Whether all numbers are in another range."""
        return least <= self.least and self.most <= most

    def minus(self, other: ElementRange) -> ElementRange:
        """The range of differences."""
        return ElementRange(self.least - other.most, self.most - other.least)


#: What numbers of four bits are, without a sign and with one.
UNSIGNED_NIBBLE, SIGNED_NIBBLE = (0, 15), (-8, 7)

_ALL = ElementRange(float("-inf"), float("inf"))


def range_of(tensor: ir.Value) -> ElementRange:
    """The range of the elements of a tensor of integers, read with their sign; that of its type if no more is known."""
    return _Ranges().of_tensor(tensor)


def has_four_bits(tensor: ir.Value) -> bool:
    """Whether all elements are numbers of four bits, with a sign or without."""
    known = range_of(tensor)
    return known.lies_in(*UNSIGNED_NIBBLE) or known.lies_in(*SIGNED_NIBBLE)


class _Ranges:
    """Follows elementwise ops, transposes and reshapes up to something else."""

    def __init__(self) -> None:
        self._ops = 0

    def of_tensor(self, value: ir.Value) -> ElementRange:
        """The range of a tensor's elements."""
        whole = range_of_type(ir.RankedTensorType(value.type).element_type)
        self._ops += 1
        op = defining_op(value)
        if op is None or self._ops > _MOST_OPS:
            return whole
        number = _constant(value)
        if number is not None:
            return ElementRange(number, number)
        if op.name in RESHAPES:
            return self.of_tensor(op.operands[0])
        if op.name == "tensor.concat":
            return functools.reduce(_either, map(self.of_tensor, op.operands))
        view = structured(op)
        if view is None or len(op.results) != 1 or not view.is_elementwise:
            return whole
        return _both(self._of_element(view.yielded[0], view), whole)

    def _of_element(self, value: ir.Value, view: LinalgOp) -> ElementRange:
        """The range of what a body computes."""
        whole = range_of_type(value.type)
        self._ops += 1
        op = defining_op(value)
        if self._ops > _MOST_OPS:
            return whole
        if op is None:
            return self._of_input(ir.BlockArgument(value).arg_number, view)
        if op.name == "tensor.extract":
            return _both(self.of_tensor(op.operands[0]), whole)
        return range_of_op(op, lambda number: self._of_element(op.operands[number], view))

    def _of_input(self, number: int, view: LinalgOp) -> ElementRange:
        operand = view.operands[number]
        return self.of_tensor(operand) if isinstance(operand.type, ir.RankedTensorType) else range_of_type(operand.type)


def range_of_op(op: ir.Operation, operand: Callable[[int], ElementRange]) -> ElementRange:
    """The range of what an op of a body computes; `operand` gives that of each of its operands."""
    number, whole = _constant(op.results[0]), range_of_type(op.results[0].type)
    if number is not None:
        return ElementRange(number, number)
    found = _of_op(op, operand)
    return found if found.lies_in(whole.least, whole.most) else whole  # else it may wrap


def _of_op(op: ir.Operation, operand: Callable[[int], ElementRange]) -> ElementRange:
    if op.name in (*_EXTENSIONS, *_ROUNDINGS):
        return operand(0)
    if op.name in ("arith.extui", "arith.uitofp"):
        inner = operand(0)
        return inner if inner.least >= 0 else ElementRange(0, 2 ** op.operands[0].type.width - 1)
    if op.name == "math.absi":
        inner = operand(0)
        return inner if inner.least >= 0 else _ALL
    if op.name == "arith.andi":
        sides = [operand(0), operand(1)]
        if all(side.least == side.most for side in sides):
            number = int(sides[0].least) & int(sides[1].least)
            return ElementRange(number, number)
        masks = [side.most for side in sides if side.least >= 0]
        return ElementRange(0, min(masks)) if masks else _ALL
    if op.name == "arith.select":
        return _either(operand(1), operand(2))
    if op.name in (*_LARGER, *_SMALLER, "arith.addi", "arith.subi", "arith.shrui", "arith.shrsi"):
        return _of_pair(op.name, operand(0), operand(1))
    return _ALL


def _of_pair(name: str, left: ElementRange, right: ElementRange) -> ElementRange:
    if name in _LARGER:
        return _larger(left, right)
    if name in _SMALLER:
        return _smaller(left, right)
    if name == "arith.addi":
        return ElementRange(left.least + right.least, left.most + right.most)
    if name == "arith.subi":
        return left.minus(right)
    shifts = right.least if right.least == right.most and left.least >= 0 else None
    return _ALL if shifts is None or left.most == float("inf") else ElementRange(0, int(left.most) >> int(shifts))


def _larger(left: ElementRange, right: ElementRange) -> ElementRange:
    return ElementRange(max(left.least, right.least), max(left.most, right.most))


def _smaller(left: ElementRange, right: ElementRange) -> ElementRange:
    return ElementRange(min(left.least, right.least), min(left.most, right.most))


def _either(left: ElementRange, right: ElementRange) -> ElementRange:
    return ElementRange(min(left.least, right.least), max(left.most, right.most))


def _both(left: ElementRange, right: ElementRange) -> ElementRange:
    return ElementRange(max(left.least, right.least), min(left.most, right.most))


def has_exactly(kind: ir.Type, value: ir.Value) -> bool:
    """Whether a float of a body is an integer that a narrower type of floats has, too: all up to 2 ** digits."""
    digits, integers = _DIGITS.get(str(kind)), integers_of(value)
    return digits is not None and integers is not None and integers.lies_in(-(2**digits), 2**digits)


def integers_of(value: ir.Value) -> ElementRange | None:
    """The range of a float of a body that is an integer; None if it may be another number."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "arith.extf":
        return integers_of(op.operands[0])
    if op.name == "arith.subf":
        left, right = map(integers_of, op.operands)
        return None if left is None or right is None else left.minus(right)
    if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.FloatAttr):
        number = ir.FloatAttr(op.attributes["value"]).value
        return ElementRange(number, number) if number.is_integer() else None
    return _range_in_body(value) if op.name in _FROM_INTEGERS else None


def _range_in_body(value: ir.Value) -> ElementRange:
    op = defining_op(value)
    if op is None:
        return range_of_type(value.type)
    return range_of_op(op, lambda number: _range_in_body(op.operands[number]))


def range_of_type(kind: ir.Type) -> ElementRange:
    """The range of integers of a type, with their sign."""
    if not isinstance(kind, ir.IntegerType):
        return _ALL
    return ElementRange(-(2 ** (kind.width - 1)), 2 ** (kind.width - 1) - 1)


def _constant(value: ir.Value) -> float | None:
    """The number that a value is known to be, or all elements of a tensor."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return attribute.value if isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr)) else None
