"""convert-through-f32: no conversion between f64 and a 16-bit float in one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.mlir import arith, ir, walk
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class ConvertThroughF32(Pass):
    """Rewrite truncf f64 -> bf16 as f64 -> f32 -> bf16, and extf back likewise; for f16 too.

    The single steps are calls of runtime functions that not every system has (`__truncdfbf2`, `__truncdfhf2`); two
    steps are what PyTorch itself does. Conversions from and to 16 bits lose the licence to be left out in pairs, which
    arith-emulate-unsupported-floats gives them: PyTorch rounds after each op.
    """

    name: ClassVar[str] = "convert-through-f32"

    def run(self, op: ir.Operation) -> None:
        """Rewrites every conversion in the module."""
        for conversion in walk(op, "arith.truncf", "arith.extf"):
            if 16 in _widths(conversion) and "fastmath" in conversion.attributes:
                del conversion.attributes["fastmath"]
            if _widths(conversion) in ((64, 16), (16, 64)):
                _split(conversion)


def _widths(conversion: ir.Operation) -> tuple[int, int]:
    source, result = (_element(value.type) for value in (conversion.operands[0], conversion.results[0]))
    return source.width, result.width


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind


def _split(conversion: ir.Operation) -> None:
    source, kind = conversion.operands[0], conversion.results[0].type
    step = arith.TruncFOp if conversion.name == "arith.truncf" else arith.ExtFOp
    with conversion.location, ir.InsertionPoint(conversion):
        middle = (
            ir.VectorType.get(kind.shape, ir.F32Type.get()) if isinstance(kind, ir.VectorType) else ir.F32Type.get()
        )
        replacement = step(kind, step(middle, source).result).result
    conversion.results[0].replace_all_uses_with(replacement)
    conversion.erase()
