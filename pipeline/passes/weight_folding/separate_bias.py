"""separate-bias: what a convolution starts from is added to its result instead, where it fuses with what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import read_contraction, read_init
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import before, behind, build_generic, empty_like, iterator_types
from pipeline.mlir import arith, defining_op, ir, linalg
from pipeline.passes.weight_folding.scale_absorption import describe
from pipeline.passes.weight_folding.weight_builder import WeightSide, fold_into
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class SeparateBias(PatternPass):
    """Have a convolution or matrix product start from zero, and add its bias to the result.

    A bias that is broadcast to the size of the result is written there and read again for nothing. An add behind the
    sum is joined with the activation after it. The weight has to be one; the bias is a number, or has fewer dims than
    the result: data of its size may be updated in place.
    """

    name: ClassVar[str] = "separate-bias"
    anchor: ClassVar[str] = "func.func"

    def analyze(self, op: ir.Operation) -> ConstExprs:
        """What comes from weights alone; rewrites add to it."""
        return ConstExprs(op)

    @pattern("linalg.*", outermost=True)
    def separate(self, op: ir.Operation, weights: ConstExprs) -> bool:
        """conv(x, w) into broadcast(b)   ->   (conv(x, w) into 0) + b"""
        contraction = read_contraction(op, weights)
        if contraction is None:
            return False
        known, bias = read_init(contraction, weights)
        if known and bias is None:
            return False
        spread = _broadcast(op.operands[2])
        if not known and spread is None:
            return False
        self.passed(op, f"adds the bias of {describe(op)} to its result")
        if spread is not None and not known:
            _add_behind(op, spread)
            return True
        with before(op):
            fold_into(contraction, None, bias, WeightSide(weights, op))
        return True


def _broadcast(init: ir.Value) -> LinalgOp | None:
    """What repeats data of fewer dims, as that of training is; None if it is something else."""
    view = structured(defining_op(init))
    if view is None or view.inputs != 1 or view.body_ops or not view.is_elementwise:
        return None
    if view.yielded != [view.body.arguments[0]] or not isinstance(view.operands[0].type, ir.RankedTensorType):
        return None
    read = view.loops_read(0)
    return view if len(read) == len(view.maps[0].results) < view.loops and is_identity(view.maps[1]) else None


def _add_behind(op: ir.Operation, spread: LinalgOp) -> None:
    """conv(x, w) into broadcast(b)   ->   (conv(x, w) into 0) + b"""
    kind = ir.RankedTensorType(op.results[0].type)
    with before(op):
        empty = empty_like(op.operands[2], kind.element_type)
        zero = arith.ConstantOp(kind.element_type, 0.0).result
        op.operands[2] = linalg.fill(zero, outs=[empty])
    with behind(op.results[0]):
        added = build_generic(
            [op.results[0], spread.operands[0]],
            [empty],
            [spread.maps[1], spread.maps[0], spread.maps[1]],
            iterator_types([False] * kind.rank),
            lambda elements: [arith.AddFOp(elements[0], elements[1]).result],
        )
    op.results[0].replace_all_uses_except(added.results[0], added)
