"""split-invariants: what does not change along some loops of an op is computed by an op of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.body_cost import CHEAP_BODY, op_cost
from pipeline.ir.body_splitting import BodyPart, split_body
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, reads_input_again, structured
from pipeline.ir.rewriting import is_pure
from pipeline.mlir import defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern

#: Ops that trap, which must not run for elements that nothing reads.
_TRAPPING = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")


@dataclass(frozen=True)
class SplitInvariants(PatternPass):
    """Compute what a body of a linalg.generic computes again and again by an op of its own, with fewer loops.

    That is what depends on inputs that are read without some of the loops: the root of a variance, for each channel, in
    the body of a norm; the activation in front of a product, for each element of its data. So come bodies that other
    compilers have merged; torch-mlir's have nothing of that kind. What is as cheap as reading it again stays, but for
    bodies of products, which are told by what they look like.
    """

    name: ClassVar[str] = "split-invariants"
    anchor: ClassVar[str] = "func.func"
    sweeps: ClassVar[int] = 3

    @pattern("linalg.generic")
    def split(self, generic: ir.Operation) -> bool:
        """generic { x * rsqrt(v[c]) }   ->   r = generic { rsqrt(v) }, generic { x * r[c] }"""
        view = structured(generic)
        if view is None or not all(isinstance(value.type, ir.RankedTensorType) for value in generic.results):
            return False
        parts = _Invariants(view).parts()
        if not parts:
            return False
        self.passed(generic, f"{len(parts)} of its values are computed once, not along all loops")
        split_body(view, parts)
        return True


class _Invariants:
    """What a body computes in fewer loops than it runs in."""

    def __init__(self, view: LinalgOp):
        self._view = view
        self._again = reads_input_again(view)
        self._read: dict[ir.Value, frozenset[int] | None] = {
            argument: frozenset((number,)) if number < view.inputs else None
            for number, argument in enumerate(view.body.arguments)
        }

    def parts(self) -> list[BodyPart]:
        """The largest of them, those that are worth an op."""
        found: dict[ir.Value, BodyPart] = {}
        for op in self._view.body_ops:
            inputs = self._inputs_of(op)
            self._read.update(dict.fromkeys(op.results, inputs))
            part = self._part(op.results[0], inputs) if inputs else None
            if part is not None and isinstance(part.value.type, ir.FloatType):
                found[part.value] = part
        return [part for part in found.values() if self._is_largest(part, found) and self._is_worth_it(part)]

    def _inputs_of(self, op: ir.Operation) -> frozenset[int] | None:
        """The inputs that an op computes from; None if it looks at anything else that changes."""
        if not is_pure(op) or op.name == "linalg.index" or len(op.regions) or len(op.results) != 1:
            return None
        if op.name.partition(".")[2] in _TRAPPING:
            return None
        behind = [self._read.get(operand, frozenset[int]()) for operand in op.operands]
        return None if None in behind else frozenset[int]().union(*(each for each in behind if each is not None))

    def _part(self, value: ir.Value, inputs: frozenset[int]) -> BodyPart | None:
        """A value as an op of its own; None if that would have as many elements as there are iterations."""
        widest = sorted(sorted(inputs), key=lambda number: -len(self._view.maps[number].results))
        read = dict.fromkeys(expression for number in widest for expression in self._view.maps[number].results)
        indices = tuple(index for index in read if not isinstance(index, ir.AffineConstantExpr))
        loops = {loop_of(index) for index in indices}
        long = [loop for loop in range(self._view.loops) if self._view.sizes[loop] != 1]
        slides = None in loops
        fewer = len(indices) < len(long) if slides else any(loop not in loops for loop in long)
        if not fewer or (slides and not self._again):
            return None
        return BodyPart(value, tuple(sorted(inputs)), indices)

    def _is_largest(self, part: BodyPart, others: dict[ir.Value, BodyPart]) -> bool:
        """Whether something reads a value that is no such value itself."""
        users = [use.owner.operation for use in part.value.uses]
        return any(not user.results or user.results[0] not in others for user in users)

    def _is_worth_it(self, part: BodyPart) -> bool:
        return self._cost(part.value, set()) > (0 if self._again else CHEAP_BODY)

    def _cost(self, value: ir.Value, counted: set[ir.Value]) -> int:
        op = defining_op(value)
        if op is None or value in counted or op.block != self._view.body:
            return 0
        counted.add(value)
        return op_cost(op) + sum(self._cost(operand, counted) for operand in op.operands)
