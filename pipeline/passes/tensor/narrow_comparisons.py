"""narrow-comparisons: what is widened only to be compared with a number is compared as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class NarrowComparisons(PatternPass):
    """Compare f32 with numbers in f32, where the number is one of f32, too.

    Torch-mlir compares with Python numbers in f64, of which a vector has half as many.
    """

    name: ClassVar[str] = "narrow-comparisons"
    anchor: ClassVar[str] = "func.func"

    @pattern("arith.cmpf")
    def narrow(self, comparison: ir.Operation) -> bool:
        """cmpf(extf(x) : f64, c : f64)   ->   cmpf(x, c : f32)"""
        narrow = [value for value in map(_as_f32, comparison.operands) if value is not None]
        widened = [_extended(operand) is not None for operand in comparison.operands]
        if not any(widened) or len(narrow) < len(widened):
            return False
        self.passed(comparison, "compares in f32")
        predicate = comparison.attributes["predicate"]
        with before(comparison):
            operands = [value if isinstance(value, ir.Value) else _constant(value) for value in narrow]
            made = arith.CmpFOp(predicate, *operands).result
        replace(comparison, [made])
        return True


def _extended(value: ir.Value) -> ir.Value | None:
    """The f32 that a value is as f64."""
    op = defining_op(value)
    if op is None or op.name != "arith.extf" or not isinstance(op.operands[0].type, ir.F32Type):
        return None
    return op.operands[0] if isinstance(value.type, ir.F64Type) else None


def _as_f32(value: ir.Value) -> ir.Value | float | None:
    """An f64 as f32: what was widened to it, or the same number; None if it is neither."""
    op = defining_op(value)
    if op is None or not isinstance(value.type, ir.F64Type):
        return None
    if op.name != "arith.constant":
        return _extended(value)
    number = ir.FloatAttr(op.attributes["value"]).value
    with np.errstate(over="ignore"):
        return number if float(np.float32(number)) == number else None


def _constant(number: float) -> ir.Value:
    return arith.ConstantOp(ir.F32Type.get(), number).result
