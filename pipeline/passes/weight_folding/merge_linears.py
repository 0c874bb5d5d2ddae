"""merge-linears: two matrix products with weights, one after the other, become one where that is less work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.channel_vectors import Vector, combine
from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import Contraction, read_contraction, read_init
from pipeline.analysis.scale_shift import Affine, read_chain, read_elementwise
from pipeline.ir.rewriting import before
from pipeline.mlir import defining_op, ir
from pipeline.passes.weight_folding.affine_rewriting import drop
from pipeline.passes.weight_folding.weight_builder import WeightSide, fold_into
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class MergeLinears(PatternPass):
    """Merge linear layers without an activation between them, if the one that results does fewer operations.

    For x of k columns, v of k by h and w of h by n, that is where k * n < k * h + h * n. Only f32 and f64: in narrower
    types the product of the weights would be rounded to them.
    """

    name: ClassVar[str] = "merge-linears"
    anchor: ClassVar[str] = "func.func"

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone; rewrites add to it."""
        return ConstExprs(op)

    @pattern("linalg.matmul")
    def merge(self, product: ir.Operation, weights: ConstExprs) -> bool:
        """(x @ v + b) @ w   ->   x @ (v @ w) + b @ w"""
        second = _linear(product, weights)
        if second is None:
            return False
        data = second.view.operands[second.data]
        chain = read_chain(read_elementwise(defining_op(data), weights), weights)
        affine, source = (chain.affine, chain.data) if chain is not None else (Affine(), data)
        first = _linear(defining_op(source), weights)
        if first is None or affine.scale is not None or any(len(list(value.uses)) > 1 for value in (data, source)):
            return False
        (k, h), (_, n) = (ir.RankedTensorType(linear.view.operands[1].type).shape for linear in (first, second))
        known, bias = read_init(second, weights)
        shift = affine.shift and second.data_to_weight(affine.shift)
        if read_init(first, weights) != (True, None) or not known or (affine.shift is not None and shift is None):
            self.missed(product, "not merged with the product before: something but a bias is added to it")
            return False
        if k * n >= k * h + h * n:
            self.missed(product, f"not merged with the product before: {k} * {n} is no less than {k * h + h * n}")
            return False
        self.passed(product, f"merged with the product before: {k * n} multiplications a row for {k * h + h * n}")
        with before(product):
            _rewrite(first, second, shift, bias, weights)
        for link in chain.links if chain is not None else ():
            drop(link)
        second.view.operands[second.data] = first.view.operands[first.data]
        first.view.op.erase()
        return True


def _rewrite(
    first: Contraction, second: Contraction, shift: Vector | None, bias: Vector | None, weights: ConstExprs
) -> None:
    """Gives `second` the weight of both, and adds what the bias of `first` becomes."""
    side = WeightSide(weights, second.view.op)
    if shift is not None:
        projected = side.projected(second, shift)
        fold_into(second, None, projected if bias is None else combine("add", bias, projected), side)
    second.view.operands[second.weight] = side.product(
        first.view.operands[first.weight], second.view.operands[second.weight]
    )


def _linear(op: ir.Operation | None, weights: ConstExprs) -> Contraction | None:
    """`op` as data @ weight in f32 or f64."""
    if op is None or op.name != "linalg.matmul":
        return None
    contraction = read_contraction(op, weights)
    element = ir.RankedTensorType(op.results[0].type).element_type
    if contraction is None or contraction.weight != 1 or not isinstance(element, (ir.F32Type, ir.F64Type)):
        return None
    plain = contraction.view.maps[1] == ir.AffineMap.get(3, 0, [ir.AffineExpr.get_dim(2), ir.AffineExpr.get_dim(1)])
    return contraction if plain else None
