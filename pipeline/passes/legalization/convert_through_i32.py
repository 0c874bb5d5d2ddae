"""convert-through-i32: no conversion of a float to a small integer in one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ConvertThroughI32(PatternPass):
    """Rewrite fptosi f32 -> i8 as f32 -> i32 -> i8; for fptoui, other floats and i16, too.

    What does not fit is undefined in one step, and depends on the instructions that are chosen: 200 would become 127 in
    some vectors. In two steps it wraps around, as in PyTorch.
    """

    name: ClassVar[str] = "convert-through-i32"

    @pattern("arith.fptosi", "arith.fptoui")
    def split(self, conversion: ir.Operation) -> bool:
        """fptosi %x : f32 to i8   ->   trunci (fptosi %x : f32 to i32) : i32 to i8"""
        kind = conversion.results[0].type
        element = kind.element_type if isinstance(kind, ir.VectorType) else kind
        if element.width not in (8, 16):
            return False
        with before(conversion):
            i32 = ir.IntegerType.get_signless(32)
            middle = ir.VectorType.get(kind.shape, i32) if isinstance(kind, ir.VectorType) else i32
            value = arith.TruncIOp(kind, arith.FPToSIOp(middle, conversion.operands[0]).result).result
        replace(conversion, [value])
        return True
