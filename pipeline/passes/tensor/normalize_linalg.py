"""normalize-linalg: of the many ways to write an op in linalg, the one that other passes look for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.concat import cut_dim, parts_of
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.rewriting import before, generalize, replace
from pipeline.mlir import ir, linalg, tensor
from pipeline.passes.tensor.softmax_lowering import build_softmax
from pipeline.passmanager.patterns import PatternPass, pattern

#: Those that keep their names: windows fix the loops of convolutions and pools, products are told by their bodies.
_STAY = ("linalg.generic", "linalg.fill", "linalg.transpose", "linalg.broadcast")


@dataclass(frozen=True)
class NormalizeLinalg(PatternPass):
    """Give linalg ops the forms that torch-mlir gives them, and that passes look for, where they come in other ones.

    Elementwise ops and reductions are linalg.generics, fills are linalg.fills, a softmax is what it is made of, and
    parts that are inserted one behind the other are a concatenation.
    """

    name: ClassVar[str] = "normalize-linalg"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    @pattern("linalg.softmax")
    def decompose(self, softmax: ir.Operation) -> bool:
        """softmax(x)   ->   exp(x - max(x)) / sum(exp(x - max(x)))"""
        with before(softmax):
            replace(
                softmax, [build_softmax(softmax.operands[0], ir.IntegerAttr(softmax.attributes["dimension"]).value)]
            )
        return True

    @pattern("linalg.*", outermost=True)
    def generalize(self, named: ir.Operation) -> bool:
        """linalg.add, linalg.map, linalg.reduce   ->   linalg.generic"""
        if named.name in _STAY or not named.regions:
            return False
        view = any_structured(named)
        if view is None or not (named.name == "linalg.reduce" or view.is_elementwise):
            return False
        generalize(named)
        return True

    @pattern("linalg.generic")
    def fill(self, generic: ir.Operation) -> bool:
        """generic { yield c }   ->   fill(c), where a sum or a convolution starts from it"""
        view = any_structured(generic)
        number = _number(view) if view is not None else None
        if view is None or number is None or not any(map(_is_start, generic.results[0].uses)):
            return False
        with before(generic):
            if isinstance(number.type, ir.ShapedType):
                number = tensor.ExtractOp(number, []).result
            replace(generic, [linalg.fill(number, outs=[generic.operands[view.inputs]])])
        return True

    @pattern("tensor.insert_slice")
    def concat(self, last: ir.Operation) -> bool:
        """insert(b, insert(a, empty))   ->   concat(a, b)"""
        parts = parts_of(last)
        if parts is None or len(parts) < 2:
            return False
        dim = cut_dim(last)
        parts.sort(key=lambda op: list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))[dim])
        kind = ir.RankedTensorType(last.results[0].type)
        with before(last):
            replace(last, [tensor.ConcatOp(kind, dim, [part.operands[0] for part in parts]).result])
        return True


def _is_start(use: ir.OpOperand) -> bool:
    """Whether a linalg op folds into a value, in its place."""
    user = use.owner.operation
    view = any_structured(user)
    return view is not None and use.operand_number >= view.inputs and not view.ignores_outputs


def _number(view: LinalgOp) -> ir.Value | None:
    """The number, or the tensor of one, that an op writes to all of its only result; None if it does something else."""
    if len(view.op.results) != 1 or not view.is_elementwise or view.body_ops:
        return None
    (value,) = view.yielded
    if value in list(view.body.arguments):
        value = view.operands[ir.BlockArgument(value).arg_number]
    return None if isinstance(value.type, ir.ShapedType) and ir.ShapedType(value.type).rank else value
