"""saturate-index-casts: an index that does not fit 32 bits becomes the nearest one that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before
from pipeline.mlir import arith, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class SaturateIndexCasts(PatternPass):
    """Clamp integers of 64 bits that become indices, which have 32 bits on the device.

    A number that does not fit must not wrap into the range of a buffer.
    """

    name: ClassVar[str] = "saturate-index-casts"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    @pattern("arith.index_cast")
    def saturate(self, cast: ir.Operation) -> bool:
        """index_cast %x : i64 to index   ->   index_cast (maxsi (minsi %x, 2147483647), -2147483648)"""
        source = cast.operands[0]
        if str(source.type) != "i64" or not isinstance(cast.results[0].type, ir.IndexType):
            return False
        with before(cast):
            least, most = (arith.ConstantOp(source.type, bound).result for bound in (-(2**31), 2**31 - 1))
            cast.operands[0] = arith.MaxSIOp(arith.MinSIOp(source, most).result, least).result
        return True
