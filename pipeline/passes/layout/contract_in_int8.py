"""contract-in-int8: products of quantized data and weights are sums of products of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.matrix_product import read_matrix_product
from pipeline.ir.byte_products import HELP, MIXED, NONE, SAME
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.matchers import is_zero
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import constant_integer, defining_op, ir
from pipeline.passes.layout.dequantization import (
    QUANTIZED_GROWTH,
    Source,
    has_quantized_tensors,
    read_dequantized,
    read_loops,
    read_quantized_data,
)
from pipeline.passes.layout.int8_product import Int8Product
from pipeline.passes.layout.quantized_factor import QuantizedFactor, read_factor
from pipeline.passmanager.patterns import PatternPass, pattern

#: Sums of more products of bytes may not fit into 32 bits.
_LONGEST = 2**31 // (255 * 255)


@dataclass(frozen=True)
class ContractInInt8(PatternPass):
    """Let matrix products of quantized data and weights add up products of bytes, in 32 bits.

    Scales and zero points are applied to the sums, which are exact; eager mode rounds each product of what it has
    dequantized. Processors that have dot products of bytes take four steps of a sum at once. Where one factor of these
    has no sign, 128 is added to one of two that have, and taken away from its zero point; where both have one, 128 is
    taken away from one that has none.
    """

    name: ClassVar[str] = "contract-in-int8"
    anchor: ClassVar[str] = "func.func"

    dots: str = field(default=MIXED, metadata={"help": HELP})

    def concerns(self, op: ir.Operation) -> bool:
        """Nothing is dequantized where there are no quantized tensors."""
        return has_quantized_tensors(op)

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone."""
        return ConstExprs(op, QUANTIZED_GROWTH)

    @pattern("linalg.*", outermost=True)
    def contract(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """matmul((x - z) * s, (w - v) * t)   ->   (i32 matmul(x, w) - z * sum(w) - v * sum(x) + z * v * K) * (s * t)"""
        product = read_matrix_product(op, ir.F32Type, ir.IntegerType)
        factors = None if product is None else _factors(product, weights)
        if product is None or factors is None:
            return False
        reason = self._why_not(product, factors)
        if reason is not None:
            self.missed(op, f"its factors are dequantized: {reason}")
            return False
        self.passed(op, "adds up products of bytes")
        with before(op):
            result = Int8Product(product, self._with_signs(factors, weights)).build()
        replace(op, [result])
        return True

    def _with_signs(self, factors: list[QuantizedFactor], weights: ConstExprs) -> list[QuantizedFactor]:
        """Factors that the processor has dot products of."""
        if self.dots == MIXED:
            return _with_mixed_signs(factors, weights)
        if self.dots == SAME and factors[0].unsigned != factors[1].unsigned:
            return [factor.with_other_sign() if factor.unsigned else factor for factor in factors]
        return factors

    def _why_not(self, product: LinalgOp, factors: Sequence[QuantizedFactor]) -> str | None:
        sizes = [product.sizes[loop] for loop in product.summed]
        is_float = isinstance(ir.RankedTensorType(product.op.results[0].type).element_type, ir.FloatType)
        if is_float and self.dots == NONE:
            return "the processor has no dot products of bytes"
        if None in sizes or prod(size or 0 for size in sizes) > _LONGEST:
            return f"sums of more than {_LONGEST} products of bytes may not fit into 32 bits"
        if not read_loops(factor.quantized for factor in factors).issuperset(product.summed):
            return "its sums have a single term"
        if not _starts_from_zero(product.operands[2]):
            return "something is added to its sums"
        if any(not _is_outside_sums(source, product) for factor in factors for source in factor.sources[1:]):
            return "a sum has several scales"
        return None


def _factors(product: LinalgOp, weights: ConstExprs) -> list[QuantizedFactor] | None:
    """Both factors of a product of data and a weight; None if one of them is not quantized."""
    found = []
    for number in (0, 1):
        value, indexing = product.operands[number], product.maps[number]
        dequantized = read_dequantized(value, indexing, weights) or read_quantized_data(value, indexing)
        factor = read_factor(dequantized) if dequantized is not None else None
        if factor is None or not factor.quantized.lies_along_loops:
            return None
        found.append(factor)
    return found


def _with_mixed_signs(factors: Sequence[QuantizedFactor], weights: ConstExprs) -> list[QuantizedFactor]:
    """Factors of which one has a sign and one has none: data loses it, or a weight gets one."""
    first, second = factors
    if first.unsigned != second.unsigned:
        return [first, second]
    if (second.quantized.value in weights) == first.unsigned:
        return [first, second.with_other_sign()]
    return [first.with_other_sign(), second]


def _starts_from_zero(output: ir.Value) -> bool:
    """Whether sums begin with a fill of zeros."""
    fill = defining_op(output)
    number = fill.operands[0] if fill is not None and fill.name == "linalg.fill" else None
    return is_zero(output) or number is not None and constant_integer(number) == 0


def _is_outside_sums(source: Source, product: LinalgOp) -> bool:
    """Whether a scale or zero point is the same for all terms of a sum, and read along loops."""
    loops = [loop_of(place) for place in source.places]
    plain = all(
        loop is not None or isinstance(place, ir.AffineConstantExpr)
        for loop, place in zip(loops, source.places, strict=True)
    )
    return plain and not any(loop is not None and product.reductions[loop] for loop in loops)
