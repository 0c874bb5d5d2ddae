"""expand-vector-math: mathematical functions of vectors become arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ExpandVectorMath(PatternPass):
    """Replace exp, log, sin, tanh, erf, pow and their relatives on vectors by arithmetic.

    LLVM would call libm once for each element, and still does so for angles above a million. That is all of exp, exp2,
    expm1, log, log2, log10, log1p, sin, cos, tan, their inverses, the hyperbolic ones, erf and pow, of f64 powers of
    two alone. docs/vector-math.md has the bounds on their errors. Scalars and what else there is on vectors are left to
    libm; a remark says so of vectors.
    """

    name: ClassVar[str] = "expand-vector-math"
    anchor: ClassVar[str] = "func.func"

    fma: bool = field(default=True, metadata={"help": "multiply and add with one rounding"})
    scalef: bool = field(default=False, metadata={"help": "the processor has AVX-512's instruction for x * 2 ** n"})
    tables: bool = field(default=False, metadata={"help": "the processor looks f32 up in AVX-512's registers"})

    def analyze(self, op: ir.Operation) -> set[tuple[str, ir.Type]]:
        """The functions, with their types, that were left to libm so far; a remark of each is enough."""
        return set()

    @pattern("math.*")
    def expand(self, call: ir.Operation, left: set[tuple[str, ir.Type]]) -> bool:
        """math.exp(x : vector<8xf32>)   ->   arithmetic"""
        from pipeline.passes.legalization.math.builder import Vectors  # they need MLIR's vector dialect
        from pipeline.passes.legalization.math.table import FUNCTIONS, HAVE_INSTRUCTIONS

        kind = call.results[0].type
        if not isinstance(kind, ir.VectorType) or not isinstance(kind.element_type, ir.FloatType):
            return False
        function, value = FUNCTIONS.get((call.name, str(kind.element_type))), None
        if function is not None:
            vectors = Vectors(kind, self.fma, scalef=self.scalef, tables=self.tables)
            with before(call):
                value = function(vectors, *call.operands)
        if value is not None:
            replace(call, [value])
        elif call.name not in HAVE_INSTRUCTIONS and (call.name, kind) not in left:
            left.add((call.name, kind))
            self.missed(call, f"{call.name} on {kind} is a call for each element")
        return value is not None
