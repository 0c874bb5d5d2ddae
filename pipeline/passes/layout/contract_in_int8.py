"""contract-in-int8: products of quantized data and weights are sums of products of bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.element_range import has_four_bits, range_of
from pipeline.analysis.matrix_product import read_convolution, read_matrix_product
from pipeline.ir.byte_products import HELP, MIXED, NONE, SAME
from pipeline.ir.linalg_op import LinalgOp, slides
from pipeline.ir.matchers import is_zero
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import constant_integer, defining_op, ir
from pipeline.passes.layout.dequantization import (
    QUANTIZED_GROWTH,
    Source,
    has_quantized_tensors,
    joined_places,
    read_dequantized,
    read_loops,
    read_quantized_data,
)
from pipeline.passes.layout.int8_convolution import Int8Convolution, start_of
from pipeline.passes.layout.int8_product import Int8Product, is_a_byte
from pipeline.passes.layout.quantized_factor import QuantizedFactor, read_factor
from pipeline.passes.layout.quantized_image import QuantizedImage, read_image
from pipeline.passes.layout.scale_groups import group_of, sums_read
from pipeline.passes.layout.scaled_int8_product import ScaledInt8Product
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

    Where groups of terms have scales or zero points of their own, or weights have four bits, the body becomes

    out + float((ext(x) - z) * (ext(w) - v)) * scale

    with the loop of the sum split into groups, and a group is a sum of integers in registers.
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
        grouped = ", each group with its scale" if _has_scales_of_groups(product, factors) else ""
        self.passed(op, f"adds up products of bytes{grouped}")
        scaled = _has_scales_of_groups(product, factors) or _has_four_bits(product, factors, weights)
        builder = ScaledInt8Product if scaled else Int8Product
        with before(op):
            signed = self._with_signs(factors, weights)
            result = builder(product, [factor.joined(product.loops) for factor in signed]).build()
        replace(op, [result])
        return True

    @pattern("linalg.*", outermost=True)
    def convolve(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """conv(pad((x - z) * s), (w - v) * t)   ->   (i32 conv(pad(x, z), w) - z * sum(w) ...) * (s * t)"""
        product = read_convolution(op, ir.F32Type)
        image = read_image(product.operands[0]) if product is not None else None
        if product is None or image is None:
            return False
        weight = _weight(product, weights)
        reason = self._why_not_convolved(product, image, weight)
        if reason is not None:
            self.missed(op, f"its factors are dequantized: {reason}")
            return False
        assert weight is not None
        self.passed(op, "adds up products of bytes")
        with before(op):
            if not slides(product):
                image, weight = self._with_signs_of_images(image, weight)
            start = None if _starts_from_zero(product.operands[2]) else start_of(product)
            result = Int8Convolution(product, image, weight).build(start)
        replace(op, [result])
        return True

    def _with_signs_of_images(
        self, image: QuantizedImage, weight: QuantizedFactor
    ) -> tuple[QuantizedImage, QuantizedFactor]:
        """An image and a weight that the processor has dot products of."""
        first, second = image.factor.unsigned, weight.unsigned
        if self.dots == MIXED and first == second:
            return (image, weight.with_other_sign()) if first else (image.with_other_sign(), weight)
        if self.dots == SAME and first != second:
            return (image.with_other_sign(), weight) if first else (image, weight.with_other_sign())
        return image, weight

    def _why_not_convolved(
        self, product: LinalgOp, image: QuantizedImage, weight: QuantizedFactor | None
    ) -> str | None:
        sizes = [product.sizes[loop] for loop in product.summed]
        if self.dots == NONE:
            return "the processor has no dot products of bytes"
        if weight is None:
            return "its weight is no tensor of bytes with few scales, or has filters in groups"
        if None in sizes or prod(size or 0 for size in sizes) > _LONGEST:
            return f"sums of more than {_LONGEST} products of bytes may not fit into 32 bits"
        if any(sums_read(source, product) != set() for source in weight.sources[1:]):
            return "a sum has several scales"
        if image.is_padded and image.border is None:
            return "no byte that is known stands for the zeros around its data"
        return None

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
        if not read_loops(joined_places(factor.quantized, product.loops) for factor in factors).issuperset(
            product.summed
        ):
            return "its sums have a single term"
        if not _starts_from_zero(product.operands[2]):
            return "something is added to its sums"
        return _why_not_scaled(product, factors)


def _why_not_scaled(product: LinalgOp, factors: Sequence[QuantizedFactor]) -> str | None:
    """Why scales and zero points cannot be applied to sums, of groups or of all terms; None if they can."""
    found = [(factor, sums_read(source, product)) for factor in factors for source in factor.sources[1:]]
    groups = {group for factor in factors for source in factor.sources[1:] if (group := _group(source)) is not None}
    sums = set[int]().union(*(read for _, read in found if read is not None))
    if any(read is None for _, read in found) or len(groups) > 1:
        return "a sum has several scales"
    if not sums and not groups:
        return None
    whole = product.summed[-1] in sums and product.summed[-1] not in {loop for loop, _ in groups}
    if whole or not isinstance(ir.RankedTensorType(product.op.results[0].type).element_type, ir.F32Type):
        return "a sum has several scales"
    if any(not is_a_byte(zero, factor) for factor in factors for zero in factor.zeros):
        return "zero points of groups may not be bytes"
    return None


def _group(source: Source) -> tuple[int | None, int] | None:
    """The loop that is cut into groups where a scale is read, and how long they are; None if none is."""
    return next((group for place in source.places if (group := group_of(place)) is not None), None)


def _has_scales_of_groups(product: LinalgOp, factors: Sequence[QuantizedFactor]) -> bool:
    """Whether a scale or zero point changes within a sum."""
    return any(sums_read(source, product) for factor in factors for source in factor.sources[1:])


def _has_four_bits(product: LinalgOp, factors: Sequence[QuantizedFactor], weights: ConstExprs) -> bool:
    """Whether one factor is a weight of numbers of four bits, which pack-nibbles can put two to a byte."""
    if not isinstance(ir.RankedTensorType(product.op.results[0].type).element_type, ir.F32Type):
        return False
    if any(not is_a_byte(zero, factor) for factor in factors for zero in factor.zeros):
        return False
    return any(factor.quantized.value in weights and has_four_bits(factor.quantized.value) for factor in factors)


def _factors(product: LinalgOp, weights: ConstExprs) -> list[QuantizedFactor] | None:
    """Both factors of a product of data and a weight; None if one of them is not quantized."""
    found = []
    for number in (0, 1):
        value, indexing = product.operands[number], product.maps[number]
        dequantized = read_dequantized(value, indexing, weights) or read_quantized_data(value, indexing)
        factor = read_factor(dequantized) if dequantized is not None else None
        if factor is None or not joined_places(factor.quantized, product.loops).lies_along_loops:
            return None
        found.append(factor)
    return found


def _weight(product: LinalgOp, weights: ConstExprs) -> QuantizedFactor | None:
    """The weight of a convolution; None if it is not quantized."""
    value, indexing = product.operands[1], product.maps[1]
    dequantized = read_dequantized(value, indexing, weights) or read_quantized_data(value, indexing)
    factor = read_factor(dequantized) if dequantized is not None else None
    if factor is None or not factor.quantized.lies_along_loops:
        return None
    return factor if all(source.value in weights for source in factor.sources) else None


def _with_mixed_signs(factors: Sequence[QuantizedFactor], weights: ConstExprs) -> list[QuantizedFactor]:
    """Factors of which one has a sign and one has none: data loses it, or a weight gets one."""
    first, second = (_as_read_best(factor, other) for factor, other in (factors, factors[::-1]))
    if first.unsigned != second.unsigned:
        return [first, second]
    if (second.quantized.value in weights) == first.unsigned:
        return [first, second.with_other_sign()]
    return [first.with_other_sign(), second]


def _as_read_best(factor: QuantizedFactor, other: QuantizedFactor) -> QuantizedFactor:
    """A factor whose bytes are below 128, and so the same with a sign and without, as the other one needs it."""
    if range_of(factor.quantized.value).lies_in(0, 127):
        return dataclasses.replace(factor, unsigned=not other.unsigned)
    return factor


def _starts_from_zero(output: ir.Value) -> bool:
    """Whether sums begin with a fill of zeros."""
    fill = defining_op(output)
    number = fill.operands[0] if fill is not None and fill.name == "linalg.fill" else None
    return is_zero(output) or number is not None and constant_integer(number) == 0
