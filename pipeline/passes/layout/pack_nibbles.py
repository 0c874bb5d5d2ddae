"""pack-nibbles: products read quantized weights of four bits from half as many bytes, which @prepare makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.element_range import UNSIGNED_NIBBLE, has_four_bits, range_of
from pipeline.analysis.op_naming import is_product
from pipeline.analysis.product_body import added_value, dequantized_input, product_of_integers
from pipeline.ir.element_types import element_type
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.nibbles import BITS, HALVES, MASK, half_of
from pipeline.ir.rewriting import before, behind, build_generic, copy_body, iterator_types, replace
from pipeline.mlir import arith, defining_op, ir, tensor
from pipeline.passes.layout.dequantization import Source
from pipeline.passes.layout.read_weights import ReadWeight, read_weight
from pipeline.passes.tensor.loop_splitting import SplitLoops
from pipeline.passes.tensor.reshape_splits import Splits
from pipeline.passmanager.patterns import PatternPass, pattern

#: What is added to a number of four bits with a sign to store it.
_OFFSET = 8


@dataclass(frozen=True)
class PackNibbles(PatternPass):
    """Let products read quantized weights that are numbers of four bits two to a byte.

    q[k, n]  ->  packed[k / 2, n], in which the lower half of a byte is that of the even k

    The loop of the sum becomes one over bytes and one over their halves, and the body takes one from the byte. Only
    where what computes the weight keeps it in the range: a mask, a shift or a clamp.
    """

    name: ClassVar[str] = "pack-nibbles"
    anchor: ClassVar[str] = "func.func"

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone."""
        return ConstExprs(op)

    @pattern("linalg.generic")
    def pack(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """generic(x, q) { out + x * float(q) }   ->   generic(x, packed) { out + x * float(half of packed) }"""
        view = structured(op)
        found = _quantized_weight(view, weights) if view is not None else None
        if view is None or found is None:
            return False
        number, weight = found
        whole = weight.source.value
        if not has_four_bits(whole):
            return False
        sums = [loop for loop in view.loops_read(number) if view.reductions[loop]]
        size = view.sizes[sums[-1]] if sums else None
        if size is None or size % HALVES:
            self.missed(op, f"its weight of {BITS} bits stays in bytes: the length of its sum, {size}, is not even")
            return False
        self.passed(op, f"reads its weight of {BITS} bits two to a byte")
        offset = 0 if range_of(whole).lies_in(*UNSIGNED_NIBBLE) else _OFFSET
        with behind(whole):
            dim = weight.source.places.index(ir.AffineDimExpr.get(sums[-1]))
            packed = Source(_packed(whole, dim, offset), weight.source.places)
        with before(op):
            part = weight.part(packed, view.loops).value
        split = SplitLoops(view, Splits({sums[-1]: (size // HALVES, HALVES)})).run()
        _read_packed(split, number, part, sums[-1] + 1, offset)
        return True


def _quantized_weight(view: LinalgOp, weights: ConstExprs) -> tuple[int, ReadWeight] | None:
    """Which factor of a product is a weight of bytes, or a part of one, that is read along loops alone; and that."""
    if view.inputs < 2 or not is_product(view.op):
        return None
    for number in (1, 0):
        is_bytes = str(element_type(view.operands[number])) == "i8"
        alone = len(view.loops_read(number)) == len(view.maps[number].results)
        weight = read_weight(view, number, weights) if is_bytes and alone and _is_dequantized(view, number) else None
        if weight is not None and not weight.is_moved:
            return number, weight
    return None


def _is_dequantized(view: LinalgOp, number: int) -> bool:
    """Whether a factor becomes a float in a sum of floats."""
    if not isinstance(ir.ShapedType(view.op.results[0].type).element_type, ir.F32Type):
        return False
    added = added_value(view)
    product = None if added is None else product_of_integers(added, view) or defining_op(added)
    return product is not None and any(dequantized_input(value, view) == number for value in product.operands)


def _read_packed(split: ir.Operation, number: int, packed: ir.Value, loop: int, offset: int) -> None:
    """Has a product read the packed weight; its loop over the halves of bytes is `loop`."""
    view = structured(split)
    assert view is not None
    places = [expression for expression in view.maps[number].results if expression != ir.AffineDimExpr.get(loop)]
    inputs, maps = list(view.operands)[: view.inputs], list(view.maps)
    inputs[number], maps[number] = packed, ir.AffineMap.get(view.loops, 0, places)

    def body(elements: Sequence[ir.Value]) -> list[ir.Value]:
        own = list(elements)
        half = half_of(own[number], loop)
        own[number] = arith.SubIOp(half, _byte(offset)).result if offset else half
        return copy_body(view, own)

    with before(split):
        outputs = list(view.operands)[view.inputs :]
        product = build_generic(inputs, outputs, maps, iterator_types(view.reductions), body)
    replace(split, list(product.results))


def _packed(weight: ir.Value, dim: int, offset: int) -> ir.Value:
    """A weight with each two elements along `dim` in a byte."""
    kind = ir.RankedTensorType(weight.type)
    shape = [size // HALVES if other == dim else size for other, size in enumerate(kind.shape)]
    groups = [[other + (other > dim)] for other in range(kind.rank)]
    groups[dim] = [dim, dim + 1]
    cut = [*shape[: dim + 1], HALVES, *shape[dim + 1 :]]
    expanded = tensor.ExpandShapeOp(ir.RankedTensorType.get(cut, kind.element_type), weight, groups, [], cut).result
    loops = [ir.AffineDimExpr.get(loop) for loop in range(kind.rank)]
    halves = [ir.AffineConstantExpr.get(half) for half in range(HALVES)]
    maps = [ir.AffineMap.get(kind.rank, 0, [*loops[: dim + 1], half, *loops[dim + 1 :]]) for half in halves]

    def joined(elements: Sequence[ir.Value]) -> list[ir.Value]:
        low, high = (arith.AndIOp(arith.AddIOp(q, _byte(offset)).result, _byte(MASK)).result for q in elements[:HALVES])
        return [arith.OrIOp(low, arith.ShLIOp(high, _byte(BITS)).result).result]

    empty = tensor.EmptyOp(shape, kind.element_type).result
    identity = ir.AffineMap.get_identity(kind.rank)
    parallel = iterator_types([False] * kind.rank)
    return build_generic([expanded] * HALVES, [empty], [*maps, identity], parallel, joined).results[0]


def _byte(number: int) -> ir.Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(8), number).result
