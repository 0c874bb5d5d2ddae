"""A tile of an op that reads a weight and what belongs to it: computes single values of its body, each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from pipeline.analysis.scaled_sum import inputs_behind
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import moves
from pipeline.mlir import arith, defining_op, ir, math, memref
from pipeline.passes.cpu.microkernel import narrow_elements
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.vector_builders import splat

#: How many bytes ahead weights are asked for, and how many come at once.
_AHEAD, _LINE = 2048, 64


@dataclass
class Term:
    """A place in the loops of a sum, and what has been computed there."""

    at: dict[int, ir.Value]
    given: dict[ir.Value, Callable[[int, int], ir.Value]] = field(default_factory=dict)
    known: dict[tuple[ir.Value, int, int], ir.Value] = field(default_factory=dict)


class FactorTile(RegisterTile):
    """A tile of sums of products, whose factors are computed apart from each other."""

    @property
    def weight(self) -> int:
        """The number of the input that is quantized."""
        raise NotImplementedError

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """The row and the number of each vector."""
        return [(row, column) for row in range(self.position.rows) for column in range(self.position.vectors)]

    def value(self, value: ir.Value, term: Term, row: int, column: int) -> ir.Value:
        """A vector of a value of the body."""
        if value in term.given:
            return term.given[value](row, column)
        key = (value, *self.place(value, row, column))
        if key not in term.known:
            term.known[key] = self._computed(value, term, *key[1:])
        return term.known[key]

    def _computed(self, value: ir.Value, term: Term, row: int, column: int) -> ir.Value:
        op = defining_op(value)
        if op is not None and op.name == "arith.constant":
            return splat(op, self.stage.tile.lanes)
        if value not in self.stage.body_values:
            return self._broadcast(narrow_elements.number(value))
        if op is None:
            return self.load(ir.BlockArgument(value).arg_number, term.at, row, column)
        known: dict[ir.Value, ir.Value] = {}
        self._clone(op, [self.value(operand, term, row, column) for operand in op.operands], known)
        return known[value]

    def place(self, value: ir.Value, row: int, column: int) -> tuple[int, int]:
        """(row, column), each 0 where a value of the body is the same for all."""
        moved = [self._position(number, row, column) for number in inputs_behind(value, self.stage.view)]
        return max((place[0] for place in moved), default=0), max((place[1] for place in moved), default=0)

    def multiply_add(self, left: ir.Value, right: ir.Value, addend: ir.Value) -> ir.Value:
        """left * right + addend, with one rounding where contractions have that."""
        if self.stage.multiply_adds.products:
            return math.FmaOp(left, right, addend).result
        return arith.AddFOp(arith.MulFOp(left, right).result, addend).result

    def prefetch(self, at: dict[int, ir.Value], width: int) -> None:
        """Asks for the weights some way ahead, `width` bytes a lane, if each is read for one tile only.

        Panels are streams of their own, which the processor follows within a page alone.
        """
        operand, tile = self.weight, self.stage.tile
        indexing, buffer = self.stage.view.maps[operand], self._buffer(operand)
        shared = tile.row_dim is not None and moves(indexing, tile.row_dim) == "fixed"
        rows = 1 if tile.row_dim is None else self.stage.view.sizes[tile.row_dim]
        if (shared and (rows is None or rows > tile.rows)) or moves(indexing, tile.vector_dim) == "fixed":
            return
        step = max(1, _LINE // (tile.lanes * width))
        for row in range(self.position.rows):
            for column in range(0, self.position.vectors, step):
                *outer, last = self._indices(operand, at, row, column)
                memref.PrefetchOp(buffer, [*outer, arith.AddIOp(last, as_index(_AHEAD)).result], False, 3, True)
