"""mark-flash-attention: attentions whose scores are never stored, however many keys there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.attributes import CUSTOM, KERNEL, STREAMED
from pipeline.mlir import ir
from pipeline.passes.gpu.flash_attention import fma_kernel, tensor_core_kernel
from pipeline.passes.gpu.flash_attention.kernel import MOST_BLOCKS, AttentionTile
from pipeline.passes.gpu.flash_attention.pattern import Attention, read_attention
from pipeline.passmanager.base import Pass

#: Fewer queries are as well served by a block that has all of their scores.
_ENOUGH_QUERIES = 16


@dataclass(frozen=True)
class MarkFlashAttention(Pass):
    """Mark the kernels whose blocks of threads go over the keys of an attention, tile by tile, with an online softmax.

    Such a kernel is a product of queries and keys, a softmax of it, in float32, and its product with values, all sizes
    known, with anything elementwise in front of the products, in front of the softmax, and behind. Where there are few
    queries, and their scores fit into the memory of a block, it is left to tile-groups-to-blocks, and where a query or
    a value is too long for a tile to fit. With tensor cores, queries, keys and weights are rounded to the type of the
    values, if that has 16 bits and the queries had it, too.
    """

    name: ClassVar[str] = "mark-flash-attention"
    anchor: ClassVar[str] = "func.func"

    scratch: int = field(default=40960, metadata={"help": "how many bytes of scores a block may keep otherwise"})
    tensor_cores: bool = field(default=False, metadata={"help": "16-bit floats are multiplied on tensor cores"})

    def run(self, op: ir.Operation) -> None:
        """Marks one function if it is an attention."""
        if KERNEL not in op.attributes or CUSTOM in op.attributes:
            return
        if ir.StringAttr(op.attributes[KERNEL]).value != "attention":
            return
        attention = read_attention(op)
        if isinstance(attention, str):
            self.missed(op, f"its scores are stored: {attention}")
            return
        keys, queries = attention.sizes[attention.key], attention.queries
        if queries < _ENOUGH_QUERIES and 2 * 4 * keys <= self.scratch:
            return
        tile = choose_tile(attention, self.tensor_cores)
        if tile is None:
            self.missed(op, "its scores are stored: queries and values are too long, or too many for one launch")
            return
        op.attributes[STREAMED] = ir.UnitAttr.get()
        self.passed(op, f"blocks of {tile.queries} queries go over {keys} keys, {tile.keys} at a time")


def choose_tile(attention: Attention, tensor_cores: bool) -> AttentionTile | None:
    """What a block does, on tensor cores where they take the types; None where nothing fits."""
    tile = tensor_core_kernel.choose_tile(attention) if tensor_cores else None
    tile = tile or fma_kernel.choose_tile(attention)
    return tile if tile is not None and tile.blocks(attention) <= MOST_BLOCKS else None
