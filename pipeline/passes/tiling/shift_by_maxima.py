"""shift-by-maxima: what is known of x - max(x), with which a softmax begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.attributes import AT_MOST_ZERO
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, defining_op, ir
from pipeline.passes.tiling.row_shifts import argument, kept, largest_subtracted
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ShiftByMaxima(PatternPass):
    """Mark the exponentials of x - max(x), which are those of no positive number, and have max(x) leave out NaN.

    An exponential that cannot overflow needs no upper bound. A processor's instruction for the larger of two numbers
    takes one of them where the other is NaN, so that handing NaN on takes two more. It is needless where NaN in a row
    makes all that becomes of the row NaN in another way: x - max(x) is NaN there, so is the sum of the exponentials,
    and so is what an op computes of an element and that sum.
    """

    name: ClassVar[str] = "shift-by-maxima"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def mark(self, generic: ir.Operation) -> bool:
        """exp(x - max(x))   ->   exp(x - max(x)) {pipeline.at_most_zero}"""
        view = structured(generic)
        powers = [] if view is None else [op for op in view.body_ops if op.name == "math.exp"]
        left = [power for power in powers if AT_MOST_ZERO not in power.attributes]
        marked = [power for power in left if view is not None and _is_shift(view, power.operands[0])]
        for power in marked:
            power.attributes[AT_MOST_ZERO] = ir.UnitAttr.get()
        if marked:
            self.passed(generic, "the exponentials are of no positive number")
        return bool(marked)

    @pattern("linalg.generic")
    def leave_out_nan(self, generic: ir.Operation) -> bool:
        """max(x)   ->   max(x but for NaN), where only sum(exp(x - max(x))) and what is computed with it is seen"""
        view = structured(generic)
        if view is None or [op.name for op in view.body_ops] != ["arith.maximumf"] or fold_ops(generic) is None:
            return False
        if not is_identity(view.maps[0]) or not _Row(view).is_nan_without_maximum():
            return False
        self.passed(generic, "NaN comes through the sum of the exponentials")
        (maximum,) = view.body_ops
        with before(maximum):
            replace(maximum, [arith.MaxNumFOp(*maximum.operands).result])
        return True


def _is_shift(view: LinalgOp, value: ir.Value) -> bool:
    """Whether a value of a body is x - max(x), computed there or by the op before."""
    operand = argument(view, value)
    if operand is None:
        return largest_subtracted(view, value) is not None
    result = view.op.operands[operand]
    made = structured(defining_op(result))
    if made is None or operand >= view.inputs:
        return False
    return largest_subtracted(made, made.yielded[ir.OpResult(result).result_number]) is not None


class _Row:
    """What becomes of the rows whose largest elements a fold computes."""

    def __init__(self, largest: LinalgOp):
        self._largest = largest
        self._rows = kept(largest.maps[-1])

    def is_nan_without_maximum(self) -> bool:
        """Whether all that is seen of a row with NaN is NaN, even if its largest element is not."""
        users = _users(self._largest.op.results[0])
        return bool(users) and all(
            view is not None and self._shifts(view) and self._is_covered(view.op.results[0]) for view in users
        )

    def _shifts(self, view: LinalgOp) -> bool:
        """Whether an op computes the shifted elements, or their exponentials, and nothing else."""
        if len(view.op.results) != 1 or not is_identity(view.maps[-1]):
            return False
        value, power = view.yielded[0], defining_op(view.yielded[0])
        shift = power.operands[0] if power is not None and power.name == "math.exp" else value
        largest = largest_subtracted(view, shift)
        return largest is not None and largest.op == self._largest.op and len(view.body_ops) <= 2

    def _is_covered(self, element: ir.Value) -> bool:
        """Whether what is computed of shifted elements is seen only where NaN in their row makes all of it NaN."""
        return all(view is not None and self._covers(view, element) for view in _users(element))

    def _covers(self, view: LinalgOp, element: ir.Value) -> bool:
        if not all(is_identity(view.maps[n]) for n in range(view.inputs) if view.op.operands[n] == element):
            return False
        if self._is_sum(view) or self._has_sum(view):
            return True
        return self._is_in_order(view) and all(map(self._is_covered, view.op.results))

    def _is_in_order(self, view: LinalgOp) -> bool:
        """Whether an op computes one element for each of the rows', in their order."""
        return view.is_elementwise and all(is_identity(view.maps[output]) for output in view.outputs)

    def _is_sum(self, view: LinalgOp) -> bool:
        """Whether an op sums up rows of elements that are NaN in their places, or of their exponentials."""
        if fold_ops(view.op) != ("arith.addf",) or view.inputs != 1 or view.reductions != self._largest.reductions:
            return False
        names = [op.name for op in view.body_ops]
        if names not in (["arith.addf"], ["math.exp", "arith.addf"]) or kept(view.maps[-1]) != self._rows:
            return False
        return is_identity(view.maps[0]) and self._is_nan_in_its_place(view.op.operands[0])

    def _has_sum(self, view: LinalgOp) -> bool:
        """Whether each result of an elementwise op is NaN where the sum of its row is."""
        if not self._is_in_order(view):
            return False
        operands = range(view.inputs)
        sums = [n for n in operands if kept(view.maps[n]) == self._rows and self._is_nan(view.op.operands[n])]
        return _is_nan_with(view, sums)

    def _is_nan(self, value: ir.Value) -> bool:
        """Whether numbers, one for each row, are NaN where there is NaN in the row: sums, and what is made of these."""
        view = structured(defining_op(value))
        if view is None:
            return False
        if any(view.reductions):
            return self._is_sum(view)
        same = view.is_elementwise and all(kept(indexing) == kept(view.maps[-1]) for indexing in view.maps)
        return same and _is_nan_with(view, [n for n in range(view.inputs) if self._is_nan(view.op.operands[n])])

    def _is_nan_in_its_place(self, value: ir.Value) -> bool:
        """Whether a value is NaN where an element of the rows is: a shifted element, or what is computed of it."""
        view = structured(defining_op(value))
        if view is None or not self._is_in_order(view):
            return False
        if self._shifts(view):
            return True
        elements = [n for n in range(view.inputs) if is_identity(view.maps[n])]
        return _is_nan_with(view, [n for n in elements if self._is_nan_in_its_place(view.op.operands[n])])


#: Ops whose result is NaN where an operand is.
_HANDS_ON_NAN = {f"arith.{name}" for name in ("addf", "subf", "mulf", "divf", "negf")} | {"math.log", "math.exp"}


def _is_nan_with(view: LinalgOp, operands: list[int]) -> bool:
    """Whether all that a body computes is NaN where the elements of some operands are."""
    known = {view.body.arguments[number] for number in operands}
    for op in view.body_ops:
        if op.name in _HANDS_ON_NAN and any(operand in known for operand in op.operands):
            known.add(op.results[0])
    return all(value in known for value in view.yielded)


def _users(value: ir.Value) -> list[LinalgOp | None]:
    """The ops that read a value; None for those that are no linalg ops, or write to it."""
    users = []
    for use in value.uses:
        view = structured(use.owner.operation)
        users.append(view if view is not None and use.operand_number < view.inputs else None)
    return users
