"""merge-linears: two matrix products with weights, one after the other, become one where that is less work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.channel_vectors import Vector, combine
from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import read_init
from pipeline.analysis.scale_shift import Affine, read_chain, read_elementwise
from pipeline.ir.rewriting import before
from pipeline.mlir import defining_op, ir
from pipeline.passes.weight_folding.affine_rewriting import drop
from pipeline.passes.weight_folding.linear_layers import Linear, merged_weight, read_before, read_linear
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

    @pattern("linalg.*", outermost=True)
    def merge(self, product: ir.Operation, weights: ConstExprs) -> bool:
        """(x @ v + b) @ w   ->   x @ (v @ w) + b @ w"""
        second = read_linear(product, weights)
        if second is None:
            return False
        chain = read_chain(read_elementwise(defining_op(second.data), weights), weights)
        affine = Affine() if chain is None else chain.last.at_result(chain.affine)
        source = second.data if chain is None else chain.data
        first = read_linear(defining_op(source), weights)
        if first is None or affine is None or affine.scale is not None or not first.is_read_by(second):
            return False
        if any(len(list(value.uses)) > 1 for value in (second.data, source)):
            return False
        known, bias = read_init(second.contraction, weights)
        shift = affine.shift and second.contraction.data_to_weight(affine.shift)
        if read_init(first.contraction, weights) != (True, None) or not known or (affine.shift and shift is None):
            self.missed(product, "not merged with the product before: something but a bias is added to it")
            return False
        k, h, n = first.inner_size, second.inner_size, second.column_size
        if k * n >= k * h + h * n:
            self.missed(product, f"not merged with the product before: {k} * {n} is no less than {k * h + h * n}")
            return False
        self.passed(product, f"merged with the product before: {k * n} multiplications a row for {k * h + h * n}")
        with before(product):
            _rewrite(first, second, shift, bias, weights)
        for link in chain.links if chain is not None else ():
            drop(link)
        with before(product):
            read_before(first, second)
        first.op.erase()
        return True


def _rewrite(first: Linear, second: Linear, shift: Vector | None, bias: Vector | None, weights: ConstExprs) -> None:
    """Gives `second` the weight of both, and adds what the bias of `first` becomes."""
    contraction = second.contraction
    side = WeightSide(weights, second.op)
    if shift is not None:
        projected = side.projected(contraction, shift)
        fold_into(contraction, None, projected if bias is None else combine("add", bias, projected), side)
    second.op.operands[contraction.weight] = merged_weight(first, second, side)
