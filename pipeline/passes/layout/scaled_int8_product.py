"""Builds products of quantized factors whose scales change within a sum: each group of terms is a sum of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import build_generic, iterator_types, sizes_of
from pipeline.mlir import arith, ir, tensor
from pipeline.passes.layout.dequantization import Expression, Source, build, columns_last, sources_of, squeezed
from pipeline.passes.layout.quantized_factor import QuantizedFactor
from pipeline.passes.layout.scale_groups import groups_of, sums_read
from pipeline.passes.tensor.loop_splitting import SplitLoops

#: Elements of sources, by the numbers of these.
Elements = Sequence[ir.Value] | Mapping[int, ir.Value]


class ScaledInt8Product:
    """A product with factors (x - z) * s and (w - v) * t, some of which are the same for groups of terms alone.

    sum(float((x - z) * (w - v)) * t) * s, where s is the same for all terms, and t and the zero points for a group.
    """

    def __init__(self, product: LinalgOp, factors: Sequence[QuantizedFactor]):
        self._product = product
        self._factors = factors
        self._i32, self._f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
        self._parallel = [loop_of(expression) for expression in product.maps[2].results]

    def build(self) -> ir.Value:
        """The results, of the type of the product's."""
        product = self._product
        column = product.maps[2].results[len(self._parallel) - 1]
        sources = [columns_last(squeezed(factor.quantized), column) for factor in self._factors]
        starts = []
        for factor in self._factors:
            starts.append(len(sources) - 1)  # the number of a source is that of its element from there
            sources += [columns_last(squeezed(source), column) for source in factor.sources[1:]]
        inside = [0, 1, *sorted(self._read_within(starts))]
        maps = [self._map(sources[number].places, product.loops) for number in inside]

        def add(elements: Sequence[ir.Value]) -> list[ir.Value]:
            read = _by_factor(inside, elements, starts)
            factors = [self._integer(*triple) for triple in zip(elements, self._factors, read, strict=False)]
            term = arith.SIToFPOp(self._f32, arith.MulIOp(*factors).result).result
            for scale in self._built(read, within=True):
                term = arith.MulFOp(term, scale).result
            return [arith.AddFOp(elements[len(elements) - 1], term).result]

        inputs, loops = [sources[number].value for number in inside], iterator_types(product.reductions)
        made = build_generic(inputs, [product.operands[2]], [*maps, product.maps[2]], loops, add)
        groups, view = groups_of(product, [sources[number] for number in inside]), structured(made)
        result = made.results[0]
        scaled = self._scaled(result, sources, starts)
        if groups is not None and view is not None:
            SplitLoops(view, groups).run()
        return scaled

    def _read_within(self, starts: Sequence[int]) -> set[int]:
        """The numbers of the sources of zero points, and of scales that change within a sum."""
        found = set[int]()
        for factor, start in zip(self._factors, starts, strict=True):
            scales = [scale for scale in factor.scales if self._is_within(scale, factor)]
            found |= {start + number for expression in (*factor.zeros, *scales) for number in sources_of(expression)}
        return found

    def _integer(self, byte: ir.Value, factor: QuantizedFactor, elements: Elements) -> ir.Value:
        """x - z of a byte, in 32 bits."""
        value = (arith.ExtUIOp if factor.unsigned else arith.ExtSIOp)(self._i32, byte).result
        for zero in factor.zeros:
            value = arith.SubIOp(value, self._narrowed(build(zero, elements))).result
        return arith.SubIOp(value, arith.ConstantOp(self._i32, factor.shift).result).result if factor.shift else value

    def _narrowed(self, zero: ir.Value) -> ir.Value:
        """A zero point that is a byte, in 32 bits."""
        if isinstance(zero.type, ir.FloatType):
            return arith.FPToSIOp(self._i32, zero).result
        if zero.type == self._i32:
            return zero
        return (arith.TruncIOp if zero.type.width > 32 else arith.ExtSIOp)(self._i32, zero).result

    def _built(self, read: Sequence[Elements], within: bool) -> list[ir.Value]:
        """The scales that change within a sum, or the others."""
        return [
            build(scale, elements)
            for factor, elements in zip(self._factors, read, strict=True)
            for scale in factor.scales
            if self._is_within(scale, factor) == within
        ]

    def _is_within(self, scale: Expression, factor: QuantizedFactor) -> bool:
        """Whether a scale changes within a sum."""
        return any(sums_read(factor.sources[number], self._product) for number in sources_of(scale))

    def _scaled(self, sums: ir.Value, sources: Sequence[Source], starts: Sequence[int]) -> ir.Value:
        """The sums times the scales that are the same for all their terms."""
        outside = [
            start + number
            for factor, start in zip(self._factors, starts, strict=True)
            for scale in factor.scales
            if not self._is_within(scale, factor)
            for number in sources_of(scale)
        ]
        outside = list(dict.fromkeys(outside))
        rank = len(self._parallel)
        loops = {loop: ir.AffineDimExpr.get(number) for number, loop in enumerate(self._parallel)}
        maps = [
            self._map([loops.get(loop_of(place), place) for place in sources[number].places], rank)
            for number in outside
        ]

        def scale(elements: Sequence[ir.Value]) -> list[ir.Value]:
            read = _by_factor(outside, elements[1:], starts)
            total = elements[0]
            for factor in self._built(read, within=False):
                total = arith.MulFOp(total, factor).result
            return [total]

        identity = ir.AffineMap.get_identity(rank)
        empty = tensor.EmptyOp(sizes_of(self._product.operands[2]), self._f32).result
        inputs = [sums, *(sources[number].value for number in outside)]
        made = build_generic(inputs, [empty], [identity, *maps, identity], iterator_types([False] * rank), scale)
        return made.results[0]

    @staticmethod
    def _map(places: Sequence[ir.AffineExpr], loops: int) -> ir.AffineMap:
        return ir.AffineMap.get(loops, 0, list(places))


def _by_factor(numbers: Sequence[int], elements: Sequence[ir.Value], starts: Sequence[int]) -> list[Elements]:
    """The elements of sources with these numbers as each factor counts them."""
    known = dict(zip(numbers, elements, strict=False))
    return [{number - start: value for number, value in known.items()} for start in starts]
