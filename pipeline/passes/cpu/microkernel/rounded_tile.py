"""Writes sums of products of factors that are rounded to bf16 as they are dequantized, by the instruction for that."""

from __future__ import annotations

from pipeline.analysis.scaled_sum import ScaledSum, dequantized_sum_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir
from pipeline.passes.cpu.microkernel.dequantized_nest import DequantizedEmitter
from pipeline.passes.cpu.microkernel.dequantized_tile import DequantizedTile, FillsPanel
from pipeline.passes.cpu.microkernel.rounding import VECTOR_LANES, is_rounding_to_bf16, nearest_bf16


class RoundedTile(DequantizedTile):
    """A tile of sums of data * core, where AVX512_BF16 rounds what is rounded to bf16."""

    @staticmethod
    def read(view: LinalgOp) -> ScaledSum | None:
        """See `DequantizedTile.read`."""
        rounds = any(is_rounding_to_bf16(op, VECTOR_LANES) for op in view.body_ops)
        return dequantized_sum_of(view) if rounds else None

    def _clone(self, op: ir.Operation, operands: list[ir.Value], known: dict[ir.Value, ir.Value]) -> None:
        if is_rounding_to_bf16(op, self.stage.tile.lanes):
            known[op.results[0]] = nearest_bf16(operands[0])
        else:
            super()._clone(op, operands, known)


class _FillsPanelOfRounded(FillsPanel, RoundedTile):
    """See `FillsPanel`."""


class RoundedEmitter(DequantizedEmitter):
    """Writes the loops of one op whose body is out + data * core, and has a core that is rounded to bf16."""

    tile_type = RoundedTile
    filling_type = _FillsPanelOfRounded
