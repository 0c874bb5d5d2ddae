"""The ranges of integers: between which numbers a value lies that is computed from loop counters and constants."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipeline.ir.element_types import element_type
from pipeline.ir.linalg_op import structured
from pipeline.ir.reshapes import TENSOR_VIEWS
from pipeline.mlir import arith, constant_integer, defining_op, ir
from pipeline.passes.control_flow.float_range import FloatRange, float_range

#: How many ops a value is followed back through.
_DEPTH = 32


_SAME = ("arith.index_cast", "arith.extsi", "arith.trunci")


@dataclass(frozen=True)
class Range:
    """The integers from `first` to `last`, both included."""

    first: int
    last: int

    def __or__(self, other: Range) -> Range:
        return Range(min(self.first, other.first), max(self.last, other.last))


_UNSIGNED = {
    arith.CmpIPredicate.ult: arith.CmpIPredicate.slt,
    arith.CmpIPredicate.ule: arith.CmpIPredicate.sle,
    arith.CmpIPredicate.ugt: arith.CmpIPredicate.sgt,
    arith.CmpIPredicate.uge: arith.CmpIPredicate.sge,
}


class Ranges:
    """The ranges of the values of a function, each computed once. Nothing may be changed while it is in use."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Range | None] = {}

    def of(self, value: ir.Value, depth: int = _DEPTH) -> Range | None:
        """The range of an integer or an index, or of the elements of a tensor; None if it may be anything.

        What overflows may be anything.
        """
        if depth > 0 and value not in self._known:
            self._known[value] = self._find(value, depth)
        return self._known.get(value)

    def _find(self, value: ir.Value, depth: int) -> Range | None:
        if isinstance(value.type, ir.RankedTensorType):
            return self._of_tensor(value, depth)
        number = constant_integer(value)
        if number is not None:
            return Range(number, number)
        if isinstance(value.owner, ir.Block):
            return self._of_argument(ir.BlockArgument(value), depth)
        found = self._of_result(value.owner.operation, depth)
        return found if found is not None and _fits(found, value.type) else None

    def outcome(self, compare: ir.Operation) -> bool | None:
        """What an arith.cmpi always yields; None if that depends."""
        left, right = (self.of(value) for value in compare.operands)
        if left is None or right is None or compare.operands[0].type == ir.IntegerType.get_signless(1):
            return None
        predicate = arith.CmpIPredicate(ir.IntegerAttr(compare.attributes["predicate"]).value)
        if predicate in _UNSIGNED:
            if min(left.first, right.first) < 0:
                return None
            predicate = _UNSIGNED[predicate]
        if predicate in (arith.CmpIPredicate.eq, arith.CmpIPredicate.ne):
            if left.last < right.first or right.last < left.first:
                return predicate == arith.CmpIPredicate.ne
            same = left == right and left.first == left.last
            return predicate == arith.CmpIPredicate.eq if same else None
        if predicate in (arith.CmpIPredicate.sgt, arith.CmpIPredicate.sge):
            left, right = right, left
        if predicate in (arith.CmpIPredicate.slt, arith.CmpIPredicate.sgt):
            return True if left.last < right.first else False if left.first >= right.last else None
        return True if left.last <= right.first else False if left.first > right.last else None

    def _of_result(self, op: ir.Operation, depth: int) -> Range | None:
        if op.name == "linalg.index":
            return self._of_counter(op)
        if op.name in _SAME:
            return self.of(op.operands[0], depth - 1)
        if op.name == "arith.fptosi":
            return _truncated(float_range(op.operands[0]))
        if op.name == "arith.select":
            condition = defining_op(op.operands[0])
            taken = self.outcome(condition) if condition is not None and condition.name == "arith.cmpi" else None
            if taken is not None:
                return self.of(op.operands[1 if taken else 2], depth - 1)
            sides = [self.of(value, depth - 1) for value in list(op.operands)[1:]]
            return sides[0] | sides[1] if sides[0] is not None and sides[1] is not None else None
        if op.name not in ("arith.addi", "arith.subi", "arith.muli"):
            return None
        left, right = (self.of(value, depth - 1) for value in op.operands)
        if left is None or right is None:
            return None
        if op.name == "arith.addi":
            return Range(left.first + right.first, left.last + right.last)
        if op.name == "arith.subi":
            return Range(left.first - right.last, left.last - right.first)
        products = [one * other for one in (left.first, left.last) for other in (right.first, right.last)]
        return Range(min(products), max(products))

    def _of_counter(self, index: ir.Operation) -> Range | None:
        """The range of a loop counter; one that never runs has none that matters."""
        view = structured(index.parent.operation)
        size = view.sizes[ir.IntegerAttr(index.attributes["dim"]).value] if view is not None else None
        return Range(0, max(0, size - 1)) if size is not None else None

    def _of_loop(self, loop: ir.Operation, depth: int) -> Range | None:
        """The range of the counter of an scf.for; one that never runs has none that matters."""
        first, end, step = (self.of(value, depth - 1) for value in list(loop.operands)[:3])
        if first is None or end is None or step is None or step.first <= 0 or "unsignedCmp" in loop.attributes:
            return None
        return Range(first.first, max(first.first, end.last - 1))

    def _of_argument(self, argument: ir.BlockArgument, depth: int) -> Range | None:
        """The range of an element that a linalg op reads, or of the counter of a loop."""
        parent = argument.owner.owner
        if isinstance(parent, (ir.Operation, ir.OpView)) and parent.operation.name == "scf.for":
            return self._of_loop(parent.operation, depth) if argument.arg_number == 0 else None
        view = structured(parent.operation) if isinstance(parent, (ir.Operation, ir.OpView)) else None
        if view is None or argument.arg_number >= view.inputs:
            return None
        return self.of(view.op.operands[argument.arg_number], depth - 1)

    def _of_tensor(self, value: ir.Value, depth: int) -> Range | None:
        op = defining_op(value)
        if op is None or not isinstance(element_type(value), (ir.IntegerType, ir.IndexType)):
            return None
        if op.name in TENSOR_VIEWS:
            return self.of(op.operands[0], depth - 1)
        if op.name == "arith.constant":
            elements = op.attributes["value"]
            if not isinstance(elements, ir.DenseIntElementsAttr) or not elements.is_splat:
                return None
            splat = elements.get_splat_value()
            return Range(splat.value, splat.value) if isinstance(splat, ir.IntegerAttr) else None
        view = structured(op)
        if view is None or not view.is_elementwise:
            return None
        return self.of(view.yielded[ir.OpResult(value).result_number], depth - 1)


def _truncated(found: FloatRange | None) -> Range | None:
    """What numbers are as integers; None if one of them is none."""
    if found is None or math.isinf(found.least) or math.isinf(found.most):
        return None
    return Range(math.trunc(found.least), math.trunc(found.most))


def _fits(found: Range, kind: ir.Type) -> bool:
    """Whether all of a range can be numbers of a type."""
    width = kind.width if isinstance(kind, ir.IntegerType) else 64
    return width > 1 and -(1 << (width - 1)) <= found.first and found.last < 1 << (width - 1)
