"""round-to-bf16: float32 becomes bfloat16 by the instruction that GPUs have for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, ir
from pipeline.passmanager.patterns import PatternPass, pattern

#: Rounds to the nearest, ties to even; NVPTX's own conversion has bfloat for a result, which LLVM 22 cannot move about.
_ASSEMBLY, _CONSTRAINTS = "cvt.rn.bf16.f32 $0, $1;", "=h,f"


@dataclass(frozen=True)
class RoundToBf16(PatternPass):
    """Write `cvt.rn.bf16.f32` for each truncf of a float32 to bfloat16: one instruction for six of whole numbers.

    From sm_80 on. What is no number stays no number, with other bits than on CPUs.
    """

    name: ClassVar[str] = "round-to-bf16"
    anchor: ClassVar[str] = "func.func"

    @pattern("arith.truncf")
    def round(self, cast: ir.Operation) -> bool:
        """truncf %x : f32 to bf16   ->   bitcast (inline_asm "cvt.rn.bf16.f32" %x) : i16 to bf16"""
        if not isinstance(cast.operands[0].type, ir.F32Type) or not isinstance(cast.results[0].type, ir.BF16Type):
            return False
        word = ir.IntegerType.get_signless(16)
        with before(cast):
            text = {"asm_string": ir.StringAttr.get(_ASSEMBLY), "constraints": ir.StringAttr.get(_CONSTRAINTS)}
            bits = ir.Operation.create("llvm.inline_asm", [word], [cast.operands[0]], text).result
            value = arith.BitcastOp(cast.results[0].type, bits).result
        replace(cast, [value])
        return True
