"""quantize-weights: products read weights as integers of a few bits, which @prepare makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.kept_weights import kept_weight
from pipeline.analysis.matrix_product import read_matrix_product
from pipeline.analysis.op_naming import is_product
from pipeline.ir.element_types import byte_size, element_type
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import before, behind, build_generic, empty_like, iterator_types, replace
from pipeline.mlir import arith, ir, math, tensor
from pipeline.passes.layout.dequantization import Source, columns_last
from pipeline.passes.layout.quantized_rows import extremes_along, largest_along, rounded_by_rows
from pipeline.passes.layout.read_weights import ReadWeight, read_weight
from pipeline.passes.layout.reshaped_places import Places
from pipeline.passes.layout.rounding_steps import as_float, clamped, scales_between, scales_of, zero_points_of
from pipeline.passes.tensor.loop_splitting import SplitLoops
from pipeline.passes.tensor.reshape_splits import Splits
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class QuantizeWeights(PatternPass):
    """Round the weights of matrix products in f32 to integers with a scale for each column, or each group of a column.

    scale = max(abs(w)) / 127,           q = round(w / scale)                       8 bits
    scale = bf16(max(abs(w)) / 7.5),     q = min(max(round(w / scale), -8), 7)      4 bits, held in bytes

    With `zero_points`, steps go from the smallest to the largest weight of a column or group, 0 included:

    scale = (most - least) / 255,        z = round(-128 - least / scale),  q = clamp(round(w / scale) + z)
    scale = bf16((most - least) / 15),   z = round(-8 - least / scale),    likewise

    and a weight is (q - z) * scale: half of the error, or less, where most weights have one sign.

    All else stays in f32, in which products of 16 bits read their factors since widen-quantized-products. One row is
    bound by the reading of the weight, of which a quarter is left or less; @prepare quantizes once, and keeps no copy
    in floats.

    With `data`, what weights are multiplied with is rounded to 8 bits likewise, in each call, with a scale for each of
    its rows; contract-in-int8 makes products of bytes of that. Weights of which a loop takes one part at a time, as
    layers of experts do, lie in no panels, which products of bytes need: their data stays in f32.
    """

    name: ClassVar[str] = "quantize-weights"
    anchor: ClassVar[str] = "func.func"

    bits: int = field(default=8, metadata={"help": "how many bits a weight has: 4 or 8"})
    group: int = field(default=0, metadata={"help": "how many weights of a column share a scale; 0 for all"})
    data: bool = field(default=False, metadata={"help": "round the data that is multiplied with weights to bytes, too"})
    zero_points: bool = field(default=False, metadata={"help": "columns or groups have zero points, too"})
    keep: tuple[str, ...] = field(default=(), metadata={"help": "weights that stay, by patterns of names"})
    least_bytes: int = field(default=1 << 14, metadata={"help": "a smaller weight stays as it is"})

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone."""
        return ConstExprs(op)

    @pattern("linalg.*", outermost=True)
    def quantize(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """matmul(x, w)   ->   generic(x, q, scale) { out + x * (float(q) * scale) }; for w[i] with q[i] and scale[i]"""
        product = read_matrix_product(op, ir.F32Type, ir.F64Type)
        if product is None:
            self._note_other_product(op, weights)
            return False
        found = {number: read_weight(product, number, weights) for number in (1, 0)}
        known = [(number, weight) for number, weight in found.items() if weight is not None]
        if len(known) != 1:
            return False
        ((number, weight),) = known
        reason = self._why_not(product, weight, weights)
        if reason is not None:
            self.missed(op, f"its weight is not quantized: {reason}")
            return False
        kind = "bytes" if self.bits == 8 else f"integers of {self.bits} bits"
        shared = "one scale and zero point" if self.zero_points else "one scale"
        also = ", and its data as bytes" if self.data and weight.index is None else ""
        self.passed(op, f"reads its weight as {kind}, {self.group or 'all'} of a column with {shared}{also}")
        self._rewrite(product, number, weight)
        return True

    def _note_other_product(self, op: ir.Operation, weights: ConstExprs) -> None:
        """Says of a convolution, or of another sum of products with a weight, that this stays as it is."""
        if not is_product(op) or not isinstance(element_type(op.results[0]), (ir.F32Type, ir.F64Type)):
            return
        known = [value for value in list(op.operands)[:2] if weights.knows(value)]
        if len(known) == 1 and (byte_size(known[0].type) or 0) >= self.least_bytes:
            self.missed(op, "its weight stays as it is: it is multiplied in no product of two matrices")

    def _why_not(self, product: LinalgOp, weight: ReadWeight, weights: ConstExprs) -> str | None:
        """Why a weight stays as it is; None if it is to be quantized."""
        whole = weight.source.value
        if isinstance(element_type(whole), ir.F64Type):
            return "it is in f64"
        kept = kept_weight(whole, weights, self.keep)
        if kept is not None:
            return f"'{kept}' is to be kept"
        size = byte_size(whole.type) or 0
        if size < self.least_bytes:
            return f"it has {size} bytes, fewer than {self.least_bytes}"
        length = product.sizes[product.summed[-1]]
        if self.group and (length is None or length % self.group):
            return f"groups of {self.group} do not divide its {length} rows"
        return None

    def _rewrite(self, product: LinalgOp, number: int, weight: ReadWeight) -> None:
        column = product.maps[2].results[len(product.maps[2].results) - 1]
        loops = product.loops + (weight.index is not None)
        with behind(weight.source.value):
            source = columns_last(weight.widened(), column)
            steps = self._steps(source, product, loops)
            whole = [self._quantized(source, steps, loops), *steps]
        with before(product.op):
            quantized, *steps = [weight.part(each, product.loops) for each in whole]
            if self.group and weight.index is not None:
                quantized = self._part_in_groups(whole[0], quantized, weight, product)
        if self.data and weight.index is None:
            self._multiply_rounded(product, number, quantized, steps)
            return
        with before(product.op):
            made = _product(product, number, quantized, steps)
        replace(product.op, list(made.results))
        if self.group:
            loop = product.summed[-1]
            length = product.sizes[loop]
            view = structured(made)
            assert view is not None and length is not None
            SplitLoops(view, Splits({loop: (length // self.group, self.group)})).run()

    def _part_in_groups(self, whole: Source, part: Source, weight: ReadWeight, product: LinalgOp) -> Source:
        """A part of a weight, taken of its groups: in front of what a loop takes, nothing has to be split then."""
        summed = ir.AffineDimExpr.get(product.summed[-1])
        dim, kept = whole.places.index(summed), part.places.index(summed)
        with behind(whole.value):
            groups = _grouped(whole.value, dim, self.group)
        places = (*whole.places[:dim], summed, summed, *whole.places[dim + 1 :])
        taken = weight.part(Source(groups, places), product.loops)
        rank = len(part.places)
        joined = [[at + (at > kept)] for at in range(rank)]
        joined[kept] = [kept, kept + 1]
        return Source(tensor.CollapseShapeOp(part.value.type, taken.value, joined).result, part.places)

    def _multiply_rounded(self, product: LinalgOp, number: int, quantized: Source, steps: Sequence[Source]) -> None:
        """matmul(x, w)   ->   matmul(dequantize(quantize(x)), dequantize(q, scale, zero))"""
        data, indexing = product.operands[1 - number], product.maps[1 - number]
        summed = [loop_of(place) in product.summed for place in indexing.results]
        with before(product.op):
            factors = [rounded_by_rows(data, summed)] * 2
            factors[number] = _dequantized(quantized, steps, product.loops)
            maps = [indexing] * 2
            maps[number] = _map(quantized.places, product.loops)
            made = build_generic(
                factors,
                [product.operands[2]],
                [*maps, product.maps[2]],
                iterator_types(product.reductions),
                lambda elements: [arith.AddFOp(elements[2], arith.MulFOp(elements[0], elements[1]).result).result],
            )
        replace(product.op, list(made.results))

    def _steps(self, source: Source, product: LinalgOp, loops: int) -> list[Source]:
        """The scales of a weight that is read along `loops`, for each column or group; and zero points, if wanted."""
        summed = [loop_of(place) in product.summed for place in source.places]
        value, places = source.value, list(source.places)
        if self.group:
            dim = places.index(ir.AffineDimExpr.get(product.summed[-1]))
            value = _grouped(value, dim, self.group)
            group = ir.AffineExpr.get_floor_div(places[dim], self.group)
            places = [*places[:dim], group, places[dim], *places[dim + 1 :]]
            summed = [*summed[:dim], False, True, *summed[dim + 1 :]]
        kept = [place for place, gone in zip(places, summed, strict=True) if not gone]
        at = tuple(ir.AffineMap.get(loops, 0, kept).results)
        if not self.zero_points:
            return [Source(scales_of(largest_along(value, summed), self.bits), at)]
        least, most = extremes_along(value, summed)
        scales = scales_between(least, most, self.bits)
        return [Source(scales, at), Source(zero_points_of(least, scales, self.bits), at)]

    def _quantized(self, source: Source, steps: Sequence[Source], loops: int) -> Source:
        """The integers of a weight, as bytes."""
        kind = ir.RankedTensorType(source.value.type)
        byte = ir.IntegerType.get_signless(8)

        def rounded(elements: Sequence[ir.Value]) -> list[ir.Value]:
            nearest = math.RoundEvenOp(arith.DivFOp(elements[0], as_float(elements[1])).result).result
            if self.zero_points:
                nearest = arith.AddFOp(nearest, as_float(elements[2])).result
            clamps = self.bits == 4 or self.zero_points
            return [arith.FPToSIOp(byte, clamped(nearest, self.bits) if clamps else nearest).result]

        identity = ir.AffineMap.get_identity(kind.rank)
        made = build_generic(
            [source.value, *(step.value for step in steps)],
            [empty_like(source.value, byte)],
            [identity, *(_along(source, step, loops) for step in steps), identity],
            iterator_types([False] * kind.rank),
            rounded,
        )
        return Source(made.results[0], source.places)


def _along(weight: Source, scale: Source, loops: int) -> ir.AffineMap:
    """How an op over a weight reads its scales."""
    rank = len(weight.places)
    own = {loop_of(place): dim for dim, place in enumerate(weight.places)}
    inside = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(own.get(loop, 0)) for loop in range(loops)])
    return ir.AffineMap.get(rank, 0, [place.compose(inside) for place in scale.places])


def _dequantized(quantized: Source, steps: Sequence[Source], loops: int) -> ir.Value:
    """A weight in floats again."""
    element = ir.F32Type.get()
    identity = ir.AffineMap.get_identity(len(quantized.places))

    return build_generic(
        [quantized.value, *(step.value for step in steps)],
        [empty_like(quantized.value, element)],
        [identity, *(_along(quantized, step, loops) for step in steps), identity],
        iterator_types([False] * len(quantized.places)),
        lambda elements: [_weight(elements[0], elements[1:-1])],
    ).results[0]


def _weight(quantized: ir.Value, steps: Sequence[ir.Value]) -> ir.Value:
    """(q - zero) * scale in f32, of a scale and perhaps a zero point."""
    scale, *zeros = steps
    whole = as_float(quantized)
    for zero in zeros:
        whole = arith.SubFOp(whole, as_float(zero)).result
    return arith.MulFOp(whole, as_float(scale)).result


def _grouped(value: ir.Value, dim: int, group: int) -> ir.Value:
    """A weight with one of its dims cut into groups."""
    kind = ir.RankedTensorType(value.type)
    shape = list(kind.shape)
    cut = [*shape[:dim], shape[dim] // group, group, *shape[dim + 1 :]]
    groups = [[number + (number > dim)] for number in range(len(shape))]
    groups[dim] = [dim, dim + 1]
    return tensor.ExpandShapeOp(ir.RankedTensorType.get(cut, kind.element_type), value, groups, [], cut).result


def _product(product: LinalgOp, number: int, quantized: Source, steps: Sequence[Source]) -> ir.Operation:
    """The product with its factor `number` read as bytes."""
    inputs, maps = list(product.operands)[:2], list(product.maps)[:2]
    inputs[number], maps[number] = quantized.value, _map(quantized.places, product.loops)

    def body(elements: Sequence[ir.Value]) -> list[ir.Value]:
        pair, total = elements[:2], elements[len(elements) - 1]
        weight = _weight(pair[number], elements[2:-1])
        return [arith.AddFOp(total, arith.MulFOp(pair[1 - number], weight).result).result]

    read = [*maps, *(_map(step.places, product.loops) for step in steps), product.maps[2]]
    inputs += [step.value for step in steps]
    return build_generic(inputs, [product.operands[2]], read, iterator_types(product.reductions), body)


def _map(places: Places, loops: int) -> ir.AffineMap:
    return ir.AffineMap.get(loops, 0, list(places))
