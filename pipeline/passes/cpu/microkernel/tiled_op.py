"""An op that runs on a register tile, and what is known of its body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir
from pipeline.passes.cpu.microkernel.data_dependent_indexing import computes_places, uniform_ops
from pipeline.passes.cpu.microkernel.pad_pattern import Pad
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes
from pipeline.passes.cpu.microkernel.vector_builders import MultiplyAdds


@dataclass(frozen=True)
class TiledOp:
    """An op as it runs on a tile: its maps go from the loops that the tile is of.

    Attributes:
        pads: the inputs that are padded copies, which are not there: their elements are loaded from what is padded.
        loaded: numbers that are inputs for all lanes of all vectors, loaded before the loop along these.
    """

    view: LinalgOp
    tile: TileSizes
    multiply_adds: MultiplyAdds
    pads: Mapping[int, Pad] = field(default_factory=dict)
    loaded: Mapping[int, ir.Value] = field(default_factory=dict)

    def within_pads(self) -> TiledOp:
        """The op on tiles that read nothing of the border."""
        return replace(self, pads={number: replace(pad, is_read=False) for number, pad in self.pads.items()})

    @cached_property
    def body_values(self) -> set[ir.Value]:
        """What the body takes and computes."""
        return {*self.view.body.arguments, *(result for op in self.view.body_ops for result in op.results)}

    @cached_property
    def uniform(self) -> list[ir.Operation]:
        """Of a body that computes places, the ops that are the same for all lanes: they are done once, on numbers."""
        return uniform_ops(self.view, self.tile.vector_dim) if computes_places(self.view.body) else []

    @cached_property
    def varying(self) -> set[ir.Value]:
        """What is not computed by those."""
        return self.body_values - {op.results[0] for op in self.uniform}
