"""expand-vector-math: mathematical functions of vectors become arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import ir
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class ExpandVectorMath(Pass):
    """Replace exp, log, sin, tanh, erf, pow and their relatives on vectors by arithmetic.

    LLVM would call libm once for each element, and still does so for angles above a million. On f32 that is all of
    exp, exp2, expm1, log, log2, log10, log1p, pow, sin, cos, tan, their inverses, the hyperbolic ones and erf; on f64
    exp, log, log1p, sin, cos and tan. docs/vector-math.md has the bounds on their errors. Scalars and what else there
    is on vectors are left to libm; a remark says so of vectors.
    """

    name: ClassVar[str] = "expand-vector-math"
    anchor: ClassVar[str] = "func.func"

    fma: bool = field(default=True, metadata={"help": "multiply and add with one rounding"})
    scalef: bool = field(default=False, metadata={"help": "the processor has AVX-512's instruction for x * 2 ** n"})

    def run(self, op: ir.Operation) -> None:
        """Expands what it can of one function."""
        from pipeline.passes.legalization.math.table import (  # they need MLIR's vector dialect
            FUNCTIONS,
            HAVE_INSTRUCTIONS,
        )

        reported = set()
        for call in _calls(op):
            kind = ir.VectorType(call.results[0].type)
            function = FUNCTIONS.get((call.name, str(kind.element_type)))
            if function is not None:
                self._expand(call, function)
            elif call.name not in HAVE_INSTRUCTIONS and (call.name, kind) not in reported:
                reported.add((call.name, kind))
                self.missed(call, f"{call.name} on {kind} is a call for each element")

    def _expand(self, call: ir.Operation, function: Callable[..., ir.Value]) -> None:
        from pipeline.passes.legalization.math.builder import Vectors

        with before(call):
            value = function(Vectors(ir.VectorType(call.results[0].type), self.fma, scalef=self.scalef), *call.operands)
        replace(call, [value])


def _calls(function: ir.Operation) -> list[ir.Operation]:
    """The ops of the math dialect on vectors of floats."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        kind = op.results[0].type if op.name.startswith("math.") else None
        if isinstance(kind, ir.VectorType) and isinstance(kind.element_type, ir.FloatType):
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found
