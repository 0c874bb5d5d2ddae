"""convert-through-f32: no conversion between f64 and a 16-bit float in one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.element_range import has_exactly
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ConvertThroughF32(PatternPass):
    """Rewrite truncf f64 -> bf16 as f64 -> f32 -> bf16, and extf back likewise; for f16 too.

    The single steps are calls of runtime functions that not every system has (`__truncdfbf2`, `__truncdfhf2`); two
    steps are what PyTorch itself does. Conversions from and to 16 bits lose the licence to be left out in pairs, which
    arith-emulate-unsupported-floats gives them: PyTorch rounds after each op. Small integers are not rounded by that.
    """

    name: ClassVar[str] = "convert-through-f32"

    @pattern("arith.truncf", "arith.extf")
    def keep_rounding(self, conversion: ir.Operation) -> bool:
        """truncf %x fastmath<contract> : f32 to bf16   ->   truncf %x : f32 to bf16"""
        if 16 not in _widths(conversion) or "fastmath" not in conversion.attributes:
            return False
        del conversion.attributes["fastmath"]
        return True

    @pattern("arith.extf")
    def drop_exact(self, conversion: ir.Operation) -> bool:
        """extf (truncf %x : f32 to bf16) : bf16 to f32   ->   %x, for %x = sitofp of i8, or a difference of such"""
        rounding = defining_op(conversion.operands[0])
        if rounding is None or rounding.name != "arith.truncf":
            return False
        value = rounding.operands[0]
        if value.type != conversion.results[0].type or not has_exactly(rounding.results[0].type, value):
            return False
        replace(conversion, [value])
        return True

    @pattern("arith.truncf", "arith.extf")
    def split(self, conversion: ir.Operation) -> bool:
        """truncf %x : f64 to bf16   ->   truncf (truncf %x : f64 to f32) : f32 to bf16"""
        if _widths(conversion) not in ((64, 16), (16, 64)):
            return False
        step = arith.TruncFOp if conversion.name == "arith.truncf" else arith.ExtFOp
        kind = conversion.results[0].type
        with before(conversion):
            f32 = ir.F32Type.get()
            middle = ir.VectorType.get(kind.shape, f32) if isinstance(kind, ir.VectorType) else f32
            value = step(kind, step(middle, conversion.operands[0]).result).result
        replace(conversion, [value])
        return True


def _widths(conversion: ir.Operation) -> tuple[int, int]:
    source, result = (_element(value.type) for value in (conversion.operands[0], conversion.results[0]))
    return source.width, result.width


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind
