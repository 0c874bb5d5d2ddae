"""expand-scalar-math: mathematical functions of single numbers become arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import ir, walk
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class ExpandScalarMath(Pass):
    """Replace the named functions of f32 or f64 numbers by arithmetic, for devices that have no libm.

    The arithmetic is that of expand-vector-math, so that CPUs and GPUs give the same results. Functions that it has not
    for a type are left alone.
    """

    name: ClassVar[str] = "expand-scalar-math"
    anchor: ClassVar[str] = "func.func"

    ops: tuple[str, ...] = field(default=(), metadata={"help": "which ones, such as exp,tanh"})
    fma: bool = field(default=True, metadata={"help": "multiply and add with one rounding"})

    exact: bool = field(default=True, metadata={"help": "what follows leaves (x + c) - c as it is"})

    def run(self, op: ir.Operation) -> None:
        """Expands what it can of one function."""
        from pipeline.passes.legalization.math.builder import Vectors
        from pipeline.passes.legalization.math.table import FUNCTIONS

        for call in walk(op, *(f"math.{name}" for name in self.ops)):
            kind = call.results[0].type
            function = FUNCTIONS.get((call.name, str(kind)))
            if function is None:
                continue
            with before(call):
                value = function(Vectors(kind, self.fma, self.exact), *call.operands)
            replace(call, [value])
