"""keep-rounding: casts between floats round, whatever is done with them later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.mlir import ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class KeepRounding(PatternPass):
    """Take away the licence to drop a truncf and the extf behind it.

    arith-emulate-unsupported-floats gives it; what is computed in f32 is to be rounded to 16 bits after each op, as in
    eager mode.
    """

    name: ClassVar[str] = "keep-rounding"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    @pattern("arith.extf", "arith.truncf")
    def keep(self, cast: ir.Operation) -> bool:
        """truncf %x fastmath<contract> : f32 to bf16   ->   truncf %x : f32 to bf16"""
        cast.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<none>")
        return True
