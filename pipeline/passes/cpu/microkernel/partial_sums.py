"""Tiles that compute a part of a sum at a time, and leave what there is of it in the result's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type
from pipeline.mlir import arith, ir
from pipeline.passes.cpu.microkernel.blocked_sums import Blocks, EmitLoop
from pipeline.passes.cpu.microkernel.loop_nest import NestEmitter
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.vector_builders import combine, splat_of


@dataclass(frozen=True)
class SumPart:
    """Terms of a sum, inside of one iteration of the loops around those that are cut.

    Attributes:
        first, last: the first iteration of the loop that is cut, and the one behind its last.
        opens, closes: whether the sum begins and ends with these terms.
        counters: of the summed loops around the one that is cut.
    """

    first: ir.Value
    last: ir.Value
    opens: ir.Value
    closes: ir.Value
    counters: Mapping[int, ir.Value] = field(default_factory=dict)


class PartialSumsEmitter(NestEmitter):
    """Writes tiles of a part of a sum.

    Attributes:
        part: the part; None for all of the sum.
    """

    part: SumPart | None = None

    def start(self, registers: RegisterTile, output: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """What the first part starts from, or what the one before has left."""
        value = super().start(registers, output, at, row, column)
        if self.part is None or output not in self.context.initials:
            return value
        return arith.SelectOp(self.part.opens, value, registers.load(output, at, row, column)).result

    def finish(self, registers: RegisterTile, results: list[ir.Value]) -> None:
        """What becomes of the sums behind the last part; before it they are put aside."""
        if self.part is None:
            super().finish(registers, results)
            return
        self.finish_if(self.part.closes, registers, results)


class AddedPartsEmitter(PartialSumsEmitter):
    """Writes tiles that sum up the terms of a part by themselves, and add them to what those before have left.

    Attributes:
        sums: how the sum is cut.
    """

    sums: Blocks

    def registers(self, position: TilePosition) -> RegisterTile:
        """The tile at a position."""
        return self.tile_type(self.stage, position)

    def tile_of_part(self, position: TilePosition) -> None:
        """One tile."""
        registers = self.registers(position)
        self.add(registers, self.sums_of_part(registers))

    def sums_of_part(self, registers: RegisterTile) -> list[ir.Value]:
        """What the terms of the part come to, by vectors of a tile."""
        assert self.part is not None
        position = registers.position
        kind = ir.VectorType.get([self.tile.lanes], element_type(self.view.operands[self.view.outputs[0]]))
        zeros = [splat_of(kind, self._fold) for _ in range(position.rows * position.vectors)]
        return self.reduction(self.sums.depth, registers, {**position.at, **self.part.counters}, zeros)

    def add(self, registers: RegisterTile, sums: list[ir.Value]) -> None:
        """Adds what the terms of the part come to."""
        self.finish(registers, self.combined(self.starts(registers), sums))

    def combined(self, totals: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        """Totals with more terms."""
        return [combine(self._fold, total, more) for total, more in zip(totals, sums, strict=True)]

    @property
    def _fold(self) -> str:
        (fold,) = self.sums.folds
        return fold

    def in_blocks(
        self, depth: int, end: ir.Value, values: list[ir.Value], run: EmitLoop, step: int = 1
    ) -> list[ir.Value]:
        """The iterations of the part."""
        assert self.part is not None
        first, last = (self.part.first, self.part.last) if depth == self.sums.depth else (as_index(0), end)
        return run(first, last, values)
