"""Reductions whose operands are gone through tile by tile: each tile is folded alone, and then into what was before."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.reduction_combiners import neutral
from pipeline.ir.rewriting import build_generic, iterator_types
from pipeline.mlir import arith, ir, linalg


def filled(scratch: ir.Value, fold: str) -> ir.Value:
    """A tensor filled with what changes nothing that it is folded with."""
    element = ir.RankedTensorType(scratch.type).element_type
    return linalg.fill(arith.ConstantOp(element, neutral(fold, element)).result, outs=[scratch])


def fold_into(total: ir.Value, part: ir.Value, fold: str) -> ir.Value:
    """total[i] = fold(part[i], total[i]): a total of several tiles with one tile more."""
    rank = ir.RankedTensorType(total.type).rank
    identity = ir.AffineMap.get_identity(rank)

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        return [ir.Operation.create(fold, results=[elements[0].type], operands=list(elements)).result]

    return build_generic([part], [total], [identity] * 2, iterator_types([False] * rank), body).results[0]
