"""expand-scalar-math: mathematical functions of single numbers become arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ExpandScalarMath(PatternPass):
    """Replace the named functions of f32 or f64 numbers by arithmetic, for devices that have no libm.

    The arithmetic is that of expand-vector-math, so that CPUs and GPUs give the same results. Functions that it has not
    for a type are left alone.
    """

    name: ClassVar[str] = "expand-scalar-math"
    anchor: ClassVar[str] = "func.func"

    ops: tuple[str, ...] = field(default=(), metadata={"help": "which ones, such as exp,tanh"})
    fma: bool = field(default=True, metadata={"help": "multiply and add with one rounding"})

    exact: bool = field(default=True, metadata={"help": "what follows leaves (x + c) - c as it is"})

    @pattern("math.*")
    def expand(self, call: ir.Operation) -> bool:
        """math.exp(x : f32)   ->   arithmetic"""
        from pipeline.passes.legalization.math.builder import Vectors
        from pipeline.passes.legalization.math.table import FUNCTIONS

        if call.name.removeprefix("math.") not in self.ops:
            return False
        kind = call.results[0].type
        function = FUNCTIONS.get((call.name, str(kind)))
        if function is None:
            return False
        with before(call):
            value = function(Vectors(kind, self.fma, self.exact), *call.operands)
        if value is not None:
            replace(call, [value])
        return value is not None
