"""What a function computes from weights alone: the arguments marked `pipeline.weight`, constants, and what follows."""

from __future__ import annotations

from pipeline.analysis.channel_vectors import Vector
from pipeline.dialects.fusion import BARRIER
from pipeline.ir.attributes import MUTABLE, WEIGHT
from pipeline.ir.element_types import byte_size, element_type
from pipeline.ir.reshapes import RESHAPES
from pipeline.ir.rewriting import argument_marks
from pipeline.mlir import captured_values, ir

_PURE = ("tensor.", "linalg.", "arith.", "math.", BARRIER)

#: How many times the bytes of the weights behind it a tensor may have by default: those of bytes as floats, which
#: convolutions read quantized weights as.
GROWTH = 4


class ConstExprs:
    """The values of one function that depend on weights and constants alone.

    Weights that the model writes to (`pipeline.mutable`) are not among them, nor is what is much larger than the
    weights behind it (a broadcast), nor what has an unknown size. `knows` tells of the larger ones, too.

    Attributes:
        growth: how many times as large what is computed may be; of integers, which are widened on the way to smaller
            ones, `GROWTH` times.
        sources: for each such value, in program order, the arguments behind it; none for what comes from constants.
        refused: ops that read nothing else and are too large, with their bytes and those of the weights behind them.
        vectors: what `vector_reading` has found, by value.
    """

    def __init__(self, function: ir.Operation, growth: int = GROWTH):
        self.growth = growth
        self.sources: dict[ir.Value, frozenset[ir.Value]] = {}
        self.refused: list[tuple[ir.Operation, int, int]] = []
        self.vectors: dict[ir.Value, Vector | None] = {}
        self._large: set[ir.Value] = set()
        for argument in weight_arguments(function):
            self.sources[argument] = frozenset((argument,))
        function.walk(self._visit, ir.WalkOrder.PRE_ORDER)

    def __contains__(self, value: ir.Value) -> bool:
        """Whether `value` is known from weights and constants alone."""
        return value in self.sources

    def knows(self, value: ir.Value) -> bool:
        """Whether the elements of `value` come from weights and constants alone, however many there are."""
        return value in self.sources or value in self._large

    def add(self, op: ir.Operation) -> None:
        """Takes note of an op that a pass has made on the weights' side."""
        self._add(op, captured_values(op))

    def _add(self, op: ir.Operation, read: list[ir.Value]) -> None:
        self.sources.update(dict.fromkeys(op.results, self._behind(read)))

    def _behind(self, read: list[ir.Value]) -> frozenset[ir.Value]:
        return frozenset().union(*(self.sources[value] for value in read))

    def _visit(self, op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if not name.startswith(_PURE):
            return ir.WalkResult.ADVANCE
        operands, written = op.operands, len(op.results) if name.startswith("linalg.") else 0
        if len(operands) > written and not self.knows(operands[0]):  # most ops end here
            return ir.WalkResult.SKIP
        if op.results and all(map(self.knows, elements_read(op))):
            read = captured_values(op)
            if all(value in self.sources for value in read) and self._is_small(op, read):
                self._add(op, read)
            elif all(map(self.knows, set(read) - set(op.operands))):
                self._large.update(op.results)
        return ir.WalkResult.SKIP

    def _is_small(self, op: ir.Operation, read: list[ir.Value]) -> bool:
        sizes = [byte_size(result.type) for result in op.results]
        if None in sizes:
            return False
        behind = self._behind(read)
        size, limit = sum(filter(None, sizes)), sum(byte_size(weight.type) or 0 for weight in behind)
        integers = all(isinstance(element_type(result), ir.IntegerType) for result in op.results)
        if not behind or size <= (max(self.growth, GROWTH) if integers else self.growth) * limit:
            return True
        self.refused.append((op, size, limit))
        return False


def elements_read(op: ir.Operation) -> list[ir.Value]:
    """The operands that decide what elements an op gives, not how many: those of a linalg op that it only writes to."""
    operands = list(op.operands)
    if op.name in RESHAPES:
        return operands[:1]
    if not op.name.startswith("linalg.") or not op.regions or not op.results:
        return operands
    arguments, inputs = op.regions[0].blocks[0].arguments, len(operands) - len(op.results)
    if len(arguments) != len(operands):  # linalg.map's
        return operands
    return operands[:inputs] + [operands[each] for each in range(inputs, len(operands)) if list(arguments[each].uses)]


def weight_arguments(function: ir.Operation) -> list[ir.BlockArgument]:
    """The arguments marked `pipeline.weight` that the model does not write to, those of known sizes."""
    if not function.regions[0].blocks:
        return []
    marks = argument_marks(function)
    arguments = function.regions[0].blocks[0].arguments
    return [
        argument
        for argument, mark in zip(arguments, marks, strict=True)
        if WEIGHT in mark and MUTABLE not in mark and byte_size(argument.type) is not None
    ]
