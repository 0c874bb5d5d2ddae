"""winograd-weights: 3x3 convolutions get their weights transformed for Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.winograd import WEIGHT, read_sizes
from pipeline.ir.attributes import WINOGRAD
from pipeline.ir.linalg_op import LinalgOp, bounded
from pipeline.ir.matchers import is_zero
from pipeline.ir.rewriting import before, build_generic, copy_body, iterator_types, replace
from pipeline.mlir import arith, ir, linalg, tensor
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class WinogradWeights(PatternPass):
    """Have 3x3 convolutions of stride 1 computed by Winograd's algorithm, with less than half of the multiplications.

    The op still says what it computes; tile-and-vectorize computes it from the transformed weight, which is @prepare's
    work. Taken are convolutions in f32 with channels last, as propagate-layouts leaves them, where the
    multiplications saved are worth more than the transforms (by an estimate, in `analysis/winograd.py`). The error is
    about that of a direct convolution with tiles of 2x2 results, and one or two digits more with 4x4.
    """

    name: ClassVar[str] = "winograd-weights"
    anchor: ClassVar[str] = "func.func"

    results: int = field(default=2, metadata={"help": "rows and columns of results in a tile: 2, or 4"})
    always: bool = field(default=False, metadata={"help": "take what does not pay, too"})

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone."""
        if self.results not in WEIGHT:
            self.fail(op, f"tiles of {self.results} x {self.results} results: expected 2 or 4")
        return ConstExprs(op)

    @pattern("linalg.generic")
    def transform(self, generic: ir.Operation, weights: ConstExprs) -> bool:
        """conv(x, w)   ->   conv(x, w, G w G^T) {pipeline.winograd = 2}"""
        view = bounded(generic)
        if view is None or len(view.maps) != 3 or view.loops != 7:
            return False
        sizes = read_sizes(view)
        if sizes is None or generic.operands[1] not in weights or not is_zero(generic.operands[2]):
            return False
        if not self.always and not sizes.pays(self.results):
            self.missed(generic, "too few channels or results for Winograd's algorithm to pay")
            return False
        self.passed(generic, f"computes tiles of {self.results} x {self.results} by Winograd's algorithm")
        self._rewrite(generic, view)
        return True

    def _rewrite(self, generic: ir.Operation, view: LinalgOp) -> None:
        data, weight, output = generic.operands
        f, c, zero = ir.AffineDimExpr.get(3), ir.AffineDimExpr.get(6), ir.AffineConstantExpr.get(0)
        block = ir.RankedTensorType(weight.type).get_dim_size(4)
        places = [ir.AffineExpr.get_floor_div(f, block), zero, c, ir.AffineExpr.get_mod(f, block)]
        with before(generic):
            new = build_generic(
                [data, weight, _transformed(weight, self.results)],
                [output],
                [*view.maps[:2], ir.AffineMap.get(7, 0, places), view.maps[2]],
                list(generic.attributes["iterator_types"]),
                lambda elements: copy_body(view, [*elements[:2], elements[3]]),
            )
        new.attributes[WINOGRAD] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.results)
        replace(generic, list(new.results))


def _transformed(weight: ir.Value, results: int) -> ir.Value:
    """w: [F / block, 3, 3, C, block]  ->  G w G^T: [F / block, (results + 2)^2, C, block]."""
    kind = ir.RankedTensorType(weight.type)
    blocks, _, _, channels, block = kind.shape
    points = results + 2
    matrix_type = ir.RankedTensorType.get([points, 3], kind.element_type)
    matrix = np.array(WEIGHT[results], dtype=np.float32)
    g = arith.ConstantOp(matrix_type, ir.DenseElementsAttr.get(matrix, type=matrix_type)).result
    empty = tensor.EmptyOp([blocks, points, points, channels, block], kind.element_type).result
    number = arith.ConstantOp(kind.element_type, 0.0).result
    zeros = linalg.fill(number, outs=[empty])
    o, a, b, c, i, r, s = (ir.AffineDimExpr.get(loop) for loop in range(7))
    places = [[a, r], [b, s], [o, r, s, c, i], [o, a, b, c, i]]

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        left, right, factor, total = elements
        product = arith.MulFOp(arith.MulFOp(left, right).result, factor).result
        return [arith.AddFOp(total, product).result]

    transformed = build_generic(
        [g, g, weight],
        [zeros],
        [ir.AffineMap.get(7, 0, indices) for indices in places],
        iterator_types([False] * 5 + [True] * 2),
        body,
    ).results[0]
    shape = [blocks, points**2, channels, block]
    joined = ir.RankedTensorType.get(shape, kind.element_type)
    return tensor.CollapseShapeOp(joined, transformed, [[0], [1, 2], [3], [4]]).result
