"""mark-library-gemm: large products of matrices become calls of a library of the device's vendor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.attributes import GEMM
from pipeline.mlir import ir
from pipeline.passes.gpu.matmul.strided_gemm import cast_behind, pays, read_product
from pipeline.passes.gpu.thread.launch_patterns import epilogues_of
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class MarkLibraryGemm(PatternPass):
    """Mark the products on buffers that a library (cuBLAS) is to compute with `pipeline.gemm`.

    Such a product is a sum from 0 on, in float32, of products of two float32, float16 or bfloat16, of known sizes,
    whose operands and result are matrices, or stacks of them, in steps that are the same everywhere. A cast of the
    result to the type of the operands goes with it; what else is behind it becomes a launch of its own, so it has to
    pay, by an estimate of both. The plan keeps our own kernel, too, for machines without the library.
    """

    name: ClassVar[str] = "mark-library-gemm"
    anchor: ClassVar[str] = "func.func"

    tf32: bool = field(default=False, metadata={"help": "float32 may be multiplied with 10 bits of mantissa"})
    all: bool = field(default=False, metadata={"help": "whatever the library can do, however small"})

    @pattern("linalg.generic")
    def mark(self, generic: ir.Operation) -> bool:
        """product   ->   product {pipeline.gemm}"""
        cast = cast_behind(generic) if _has_two_inputs(generic) else None
        product = read_product(generic, cast) if _has_two_inputs(generic) else None
        if product is None:
            return False
        element = str(ir.MemRefType(generic.operands[0].type).element_type)
        precision = "tf32" if self.tf32 and element == "f32" else element
        behind = len(epilogues_of(generic)) > (cast is not None)
        size = f"{product.batch} x {product.rows} x {product.sum} x {product.columns}"
        if not self.all and not pays(product, precision, behind):
            self.missed(generic, f"a product of {size} is computed by a kernel of our own: a library saves too little")
            return False
        generic.attributes[GEMM] = ir.StringAttr.get("tf32" if precision == "tf32" else "f32")
        self.passed(generic, f"a product of {size} is left to the library")
        return True


def _has_two_inputs(generic: ir.Operation) -> bool:
    operands = list(generic.operands)
    return len(operands) == 3 and all(isinstance(operand.type, ir.MemRefType) for operand in operands)
