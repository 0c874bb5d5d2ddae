"""saturate-index-casts: an index that does not fit 32 bits becomes the nearest one that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before
from pipeline.mlir import arith, ir, walk
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class SaturateIndexCasts(Pass):
    """Clamp integers of 64 bits that become indices, which have 32 bits on the device.

    index_cast %x : i64 to index  ->  index_cast (maxsi (minsi %x, 2147483647), -2147483648)

    A number that does not fit must not wrap into the range of a buffer.
    """

    name: ClassVar[str] = "saturate-index-casts"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites one function."""
        for cast in walk(op, "arith.index_cast"):
            source = cast.operands[0]
            if str(source.type) == "i64" and isinstance(cast.results[0].type, ir.IndexType):
                with before(cast):
                    least, most = (arith.ConstantOp(source.type, bound).result for bound in (-(2**31), 2**31 - 1))
                    cast.operands[0] = arith.MaxSIOp(arith.MinSIOp(source, most).result, least).result
