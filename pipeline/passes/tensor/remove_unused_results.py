"""remove-unused-results: results of a linalg.generic that nobody uses are no longer computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before, build_generic, copy_attributes, is_pure, is_unused
from pipeline.mlir import captured_values, clone, defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class RemoveUnusedResults(PatternPass):
    """Drop unused results of a linalg.generic that has others, such as the argmax beside the maximum of a softmax.

    A result goes together with its init and the ops that only it needs. It stays if another result is computed from it,
    or if its init is what says how often a loop runs. Casts that nobody reads use no result: those of sizes that are
    known at run time only have some.
    """

    name: ClassVar[str] = "remove-unused-results"
    anchor: ClassVar[str] = "func.func"

    @pattern("tensor.cast", users_first=True)
    def erase(self, cast: ir.Operation) -> bool:
        """tensor.cast %argmax (unused)   ->   nothing"""
        if not is_unused(cast.results[0]):
            return False
        cast.erase()
        return True

    @pattern("linalg.generic", users_first=True)
    def remove(self, generic: ir.Operation) -> bool:
        """%max, %argmax(unused) = generic { yield m, i }   ->   %max = generic { yield m }"""
        kept = [number for number, result in enumerate(generic.results) if not is_unused(result)]
        if not kept or len(kept) == len(generic.results):
            return False
        body = _GenericBody(generic)
        problem = body.why_not(kept)
        if problem:
            self.missed(generic, problem)
            return False
        self.passed(generic, f"dropped {len(generic.results) - len(kept)} of {len(generic.results)} results")
        body.rebuild(kept)
        return True


class _GenericBody:
    """A linalg.generic, taken apart."""

    def __init__(self, generic: ir.Operation):
        self.generic = generic
        self.block = generic.regions[0].blocks[0]
        *ops, terminator = [op.operation for op in self.block.operations]
        self.ops = ops
        self.yielded = list(terminator.operands)
        self.inputs = len(generic.operands) - len(generic.results)
        self.maps = [ir.AffineMapAttr(entry).value for entry in generic.attributes["indexing_maps"]]
        self.outputs = list(self.block.arguments)[self.inputs :]

    def operand_numbers(self, kept: Sequence[int]) -> list[int]:
        """The numbers of the operands that stay when the results `kept` do."""
        return [*range(self.inputs), *(self.inputs + number for number in kept)]

    def needed(self, kept: Sequence[int]) -> tuple[set[ir.Operation], set[ir.Value]]:
        """The ops of the body that stay when the results `kept` do, and all values that they read."""
        reached: set[ir.Operation] = set()
        values: set[ir.Value] = set()
        left = [self.yielded[number] for number in kept]
        left += [value for op in self.ops if not is_pure(op) for value in (*op.results, *captured_values(op))]
        reached.update(op for op in self.ops if not is_pure(op))
        while left:
            value = left.pop()
            values.add(value)
            producer = defining_op(value)
            if producer is not None and producer in self.ops and producer not in reached:
                reached.add(producer)
                left += captured_values(producer)
        return reached, values

    def why_not(self, kept: Sequence[int]) -> str | None:
        """Why only the results `kept` cannot stay; None if they can."""
        _, values = self.needed(kept)
        for number, output in enumerate(self.outputs):
            if number not in kept and output in values:
                return f"unused result {number} is needed to compute another"
        covered = {
            position
            for number in self.operand_numbers(kept)
            for expression in self.maps[number].results
            for position in range(self.maps[number].n_dims)
            if expression == ir.AffineExpr.get_dim(position)
        }
        if len(covered) < self.maps[0].n_dims:
            return "the init of an unused result says how often a loop runs"
        return None

    def rebuild(self, kept: Sequence[int]) -> None:
        """Puts a generic with only the results `kept` in the place of the old one."""
        numbers = self.operand_numbers(kept)
        ops, _ = self.needed(kept)

        def body(arguments: Sequence[ir.BlockArgument]) -> list[ir.Value]:
            known = {self.block.arguments[number]: arguments[index] for index, number in enumerate(numbers)}
            for op in self.ops:
                if op in ops:
                    clone(op, known)
            return [known.get(self.yielded[number], self.yielded[number]) for number in kept]

        operands = [self.generic.operands[number] for number in numbers]
        with before(self.generic):
            fresh = build_generic(
                operands[: self.inputs],
                operands[self.inputs :],
                [self.maps[number] for number in numbers],
                list(self.generic.attributes["iterator_types"]),
                body,
            )
        copy_attributes(self.generic, fresh)
        for index, number in enumerate(kept):
            self.generic.results[number].replace_all_uses_with(fresh.results[index])
        self.generic.erase()
