"""Builds products of quantized factors: sums of products of bytes, and what zero points and scales make of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pipeline.analysis.element_range import range_of
from pipeline.analysis.product_body import is_quantized
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import build_generic, iterator_types, sizes_of
from pipeline.mlir import arith, ir, linalg, math, tensor
from pipeline.passes.layout.dequantization import Compute, Expression, Read, Source, build, columns_last, squeezed
from pipeline.passes.layout.quantized_factor import QuantizedFactor

_EXTENSIONS = ("arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp")


class Int8Product:
    """A product with factors (x - z) * s and (w - v) * t, where z, s, v and t are the same for all terms of a sum.

    Sums of bytes fit into 32 bits. What zero points take away does, too, where these are bytes themselves; else it is
    computed in 64 bits.
    """

    def __init__(self, product: LinalgOp, factors: Sequence[QuantizedFactor]):
        self._product = product
        self._factors = factors
        self._i32 = ir.IntegerType.get_signless(32)
        narrow = all(is_a_byte(zero, factor) for factor in factors for zero in factor.zeros)
        self._wide = self._i32 if narrow else ir.IntegerType.get_signless(64)
        self._parallel = [loop_of(expression) for expression in product.maps[2].results]

    def build(self) -> ir.Value:
        """(sum(x * w) - z * sum(w) - v * sum(x) + z * v * K) * (s * t), of the type of the product's result."""
        column = self._product.maps[2].results[len(self._parallel) - 1]
        bytes_ = [columns_last(squeezed(factor.quantized), column) for factor in self._factors]
        sources = [self._sum_of_products(bytes_)]
        summed: list[int | None] = [None, None]
        for number, other in ((0, 1), (1, 0)):
            if not self._factors[other].is_centered:
                summed[number] = len(sources)
                sources.append(self._sum(bytes_[number], self._factors[number].unsigned))
        starts = []
        for factor in self._factors:
            starts.append(len(sources) - 1)
            sources += map(squeezed, factor.sources[1:])
        return self._scaled(sources, summed, starts)

    def _sum_of_products(self, bytes_: Sequence[Source]) -> Source:
        """The sum of products of bytes, in 32 bits."""
        product = self._product

        def add(elements: Sequence[ir.Value]) -> list[ir.Value]:
            wide = [self._extended(value, factor) for value, factor in zip(elements, self._factors, strict=False)]
            return [arith.AddIOp(elements[2], arith.MulIOp(*wide).result).result]

        maps = [self._map(source.places, product.loops) for source in bytes_]
        zeros = self._zeros(sizes_of(product.operands[2]))
        inputs = [source.value for source in bytes_]
        made = build_generic(inputs, [zeros], [*maps, product.maps[2]], iterator_types(product.reductions), add)
        return Source(made.results[0], tuple(product.maps[2].results))

    def _sum(self, source: Source, unsigned: bool) -> Source:
        """The sums of the bytes of a factor along the loops of the product's sums."""
        kept = [place for place in source.places if loop_of(place) in self._parallel]
        sizes = [size for size, place in zip(sizes_of(source.value), source.places, strict=True) if place in kept]
        rank = len(source.places)
        own = [ir.AffineDimExpr.get(dim) for dim in range(rank)]
        outer = [dim for dim, place in zip(own, source.places, strict=True) if place in kept]
        extend = arith.ExtUIOp if unsigned else arith.ExtSIOp
        made = build_generic(
            [source.value],
            [self._zeros(sizes)],
            [ir.AffineMap.get_identity(rank), ir.AffineMap.get(rank, 0, outer)],
            iterator_types([place not in kept for place in source.places]),
            lambda elements: [arith.AddIOp(elements[1], extend(self._i32, elements[0]).result).result],
        )
        return Source(made.results[0], tuple(kept))

    def _scaled(
        self, sources: Sequence[Source], summed: Sequence[int | None], starts: Sequence[int], added: int | None = None
    ) -> ir.Value:
        """The results, from the sums of products, the sums of factors, and what these read besides.

        `added`: the number of a source that is added to what has been scaled.
        """
        result = ir.RankedTensorType(self._product.op.results[0].type)
        rank = len(self._parallel)

        def scale(elements: Sequence[ir.Value]) -> list[ir.Value]:
            read = [elements[start:] for start in starts]  # the number of a source is the one of its element from there
            centers = [self._center(*pair) for pair in zip(self._factors, read, strict=True)]
            total = self._widened(elements[0])
            for number, other in ((0, 1), (1, 0)):
                place = summed[other]
                if place is not None:
                    taken = arith.MulIOp(centers[number], self._widened(elements[place])).result
                    total = arith.SubIOp(total, taken).result
            if None not in summed:
                both = arith.MulIOp(arith.MulIOp(*centers).result, self._number(self._terms())).result
                total = arith.AddIOp(total, both).result
            addend = None if added is None else elements[added]
            return [self._multiplied(total, read, result.element_type, addend)]

        loops = {loop: ir.AffineDimExpr.get(number) for number, loop in enumerate(self._parallel)}
        maps = [
            self._map([place if loop_of(place) is None else loops[loop_of(place)] for place in source.places], rank)
            for source in sources
        ]
        empty = tensor.EmptyOp(sizes_of(self._product.operands[2]), result.element_type).result
        inputs = [source.value for source in sources]
        identity = ir.AffineMap.get_identity(rank)
        return build_generic(inputs, [empty], [*maps, identity], iterator_types([False] * rank), scale).results[0]

    def _center(self, factor: QuantizedFactor, elements: Sequence[ir.Value]) -> ir.Value:
        """What is taken away from a factor's bytes."""
        total = self._number(factor.shift)
        for zero in factor.zeros:
            value = build(zero, elements)
            if isinstance(value.type, ir.FloatType):
                value = arith.FPToSIOp(self._wide, value).result
            elif value.type.width > self._wide.width:
                value = arith.TruncIOp(self._wide, value).result
            else:
                value = self._widened(value)
            total = arith.AddIOp(total, value).result
        return total

    def _widened(self, value: ir.Value) -> ir.Value:
        """An integer in as many bits as sums and zero points have."""
        return value if value.type == self._wide else arith.ExtSIOp(self._wide, value).result

    def _multiplied(
        self, total: ir.Value, read: Sequence[Sequence[ir.Value]], kind: ir.Type, addend: ir.Value | None
    ) -> ir.Value:
        """Sums times scales, as a type, and what is added to them, with one rounding."""
        if isinstance(kind, ir.IntegerType):
            if kind.width < total.type.width:
                return arith.TruncIOp(kind, total).result
            return total if kind == total.type else arith.ExtSIOp(kind, total).result
        scales = [
            build(scale, elements)
            for factor, elements in zip(self._factors, read, strict=True)
            for scale in factor.scales
        ]
        value = arith.SIToFPOp(kind, total).result
        if not scales:
            return value if addend is None else arith.AddFOp(value, addend).result
        whole, *others = scales
        for other in others:
            whole = arith.MulFOp(whole, other).result
        return arith.MulFOp(value, whole).result if addend is None else math.FmaOp(value, whole, addend).result

    def _terms(self) -> int:
        """How many products a sum has."""
        return prod(self._product.sizes[loop] or 0 for loop in self._product.summed)

    def _extended(self, value: ir.Value, factor: QuantizedFactor) -> ir.Value:
        return (arith.ExtUIOp if factor.unsigned else arith.ExtSIOp)(self._i32, value).result

    def _number(self, number: int) -> ir.Value:
        return arith.ConstantOp(self._wide, number).result

    def _zeros(self, sizes: Sequence[int | ir.Value]) -> ir.Value:
        zero = arith.ConstantOp(self._i32, 0).result
        return linalg.fill(zero, outs=[tensor.EmptyOp(sizes, self._i32).result])

    @staticmethod
    def _map(places: Sequence[ir.AffineExpr], loops: int) -> ir.AffineMap:
        return ir.AffineMap.get(loops, 0, list(places))


def is_a_byte(zero: Expression, factor: QuantizedFactor) -> bool:
    """Whether a zero point is known to be in the range of bytes, with a sign or without."""
    if isinstance(zero, Compute) and zero.op.name == "arith.constant":
        value = zero.op.attributes["value"]
        number = value.value if isinstance(value, (ir.IntegerAttr, ir.FloatAttr)) else None
        return number is not None and -128 <= number <= 255
    if isinstance(zero, Compute) and len(zero.operands) == 1 and zero.op.name in _EXTENSIONS:
        return is_a_byte(zero.operands[0], factor)
    if isinstance(zero, Read):
        value = factor.sources[zero.source].value
        return is_quantized(ir.RankedTensorType(value.type).element_type) or range_of(value).lies_in(-128, 255)
    return False
