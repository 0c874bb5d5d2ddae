"""keep-rounding: casts between floats round, whatever is done with them later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.mlir import ir, walk
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class KeepRounding(Pass):
    """Take away the licence to drop a truncf and the extf behind it.

    truncf %x fastmath<contract> : f32 to bf16  ->  truncf %x : f32 to bf16

    arith-emulate-unsupported-floats gives it; what is computed in f32 is to be rounded to 16 bits after each op, as in
    eager mode.
    """

    name: ClassVar[str] = "keep-rounding"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Changes the casts of one function."""
        for cast in walk(op, "arith.extf", "arith.truncf"):
            cast.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<none>")
