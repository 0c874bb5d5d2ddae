"""widen-quantized-products: products of 16 bits whose factors are quantized, or are to be, become products in f32."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.matrix_product import read_matrix_product
from pipeline.analysis.product_body import is_quantized
from pipeline.ir.element_types import element_type
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import before, build_elementwise
from pipeline.mlir import arith, ir
from pipeline.passes.layout.dequantization import has_as_many_elements, has_quantized_tensors, read_known
from pipeline.passes.layout.read_weights import read_weight
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class WidenQuantizedProducts(PatternPass):
    """Have matrix products of bf16 or f16 that are added up in f32 read factors in f32, where one is quantized.

    The passes behind it look for products in f32, into which they put what a weight is computed from. The numbers that
    are multiplied are the same, so that contract-in-bf16 takes back what nothing came of.
    """

    name: ClassVar[str] = "widen-quantized-products"
    anchor: ClassVar[str] = "func.func"

    weights: bool = field(default=False, metadata={"help": "of all weights: they are to be quantized"})

    def concerns(self, op: ir.Operation) -> bool:
        """Nothing is quantized where there are no quantized tensors, and weights stay as they are."""
        return self.weights or has_quantized_tensors(op)

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone."""
        return ConstExprs(op)

    @pattern("linalg.*", outermost=True)
    def widen(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """matmul(x : bf16, w : bf16) : f32   ->   matmul(extf(x), extf(w)), for w that is quantized, or is to be"""
        product = read_matrix_product(op, ir.F32Type, ir.BF16Type, ir.F16Type)
        if product is None or not isinstance(element_type(product.operands[2]), ir.F32Type):
            return False
        narrow = [number for number in range(2) if not isinstance(element_type(product.operands[number]), ir.F32Type)]
        if not narrow or not any(self._is_quantized(product, number, weights) for number in range(2)):
            return False
        for number in narrow:
            _widen(product, number)
        return True

    def _is_quantized(self, product: LinalgOp, number: int, weights: ConstExprs) -> bool:
        """Whether a factor comes from as many small integers, or is a weight that is to become such."""
        value = product.operands[number]
        if self.weights and read_weight(product, number, weights) is not None:
            return True
        read = read_known(value, None, product.maps[number])
        sources = () if read is None else read.sources
        return any(is_quantized(element_type(of.value)) and has_as_many_elements(of.value, value) for of in sources)


def _widen(product: LinalgOp, number: int) -> None:
    """Has a product read a factor in f32, which its body no longer extends."""
    value, wide = product.operands[number], ir.F32Type.get()
    with before(product.op):
        extended = build_elementwise(value, wide, lambda element: arith.ExtFOp(wide, element).result)
    product.op.operands[number] = extended
    element = product.body.arguments[number]
    casts = [use.owner for use in element.uses]
    element.set_type(wide)
    for cast in casts:
        assert cast.name == "arith.extf", "its body adds up products in f32"
        cast.results[0].replace_all_uses_with(element)
        cast.erase()
