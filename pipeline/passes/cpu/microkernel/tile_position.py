"""Where a register tile is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipeline.mlir import ir


@dataclass(frozen=True)
class TilePosition:
    """Where a register tile is, and how much of it there is.

    Attributes:
        at: the counters of the loops around it, by their numbers; along its rows and vectors, of its first element.
        rows, vectors: how many it has.
        mask: how many elements of the last vector of a row there are; None for all.
    """

    at: Mapping[int, ir.Value] = field(default_factory=dict)
    rows: int = 1
    vectors: int = 1
    mask: ir.Value | None = None

    def inside(self, loop: int, counter: ir.Value) -> TilePosition:
        """The position in one more loop."""
        return replace(self, at={**self.at, loop: counter})

    def with_rows(self, loop: int, counter: ir.Value, rows: int) -> TilePosition:
        """The position of so many rows, from a row on."""
        return replace(self.inside(loop, counter), rows=rows)

    def with_vectors(self, loop: int, counter: ir.Value, vectors: int, mask: ir.Value | None) -> TilePosition:
        """The position of so many vectors, from an element on."""
        return replace(self.inside(loop, counter), vectors=vectors, mask=mask)
