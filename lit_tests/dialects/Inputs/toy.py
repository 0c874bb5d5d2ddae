"""A dialect of a user, with a lowering to linalg and one to a call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pipeline.ir.rewriting import before, build_generic, replace
from pipeline.mlir import arith, ext, func, ir, walk
from pipeline.passmanager.base import Pass


class Toy(ext.Dialect, name="toy"):
    """Two ops on tensors."""


class Square(Toy.Operation, name="square"):
    """Squares each element."""

    value: ext.Operand[Any]
    result: ext.Result[Any]

    def verify_invariants(self) -> bool:
        if self.operands[0].type == self.results[0].type:
            return True
        self.location.emit_error("'toy.square' op has operand and result of different types")
        return False


class Report(Toy.Operation, name="report"):
    """Hands values to the program around."""

    values: Sequence[ext.Operand[Any]]


@dataclass(frozen=True)
class LowerToy(Pass):
    """Lower toy.square to linalg.generic and toy.report to a call."""

    name: ClassVar[str] = "lower-toy"

    callee: str = field(default="report", metadata={"help": "the function that toy.report calls"})

    def run(self, op: ir.Operation) -> None:
        for square in walk(op, "toy.square"):
            self._lower_square(square)
        for report in walk(op, "toy.report"):
            self._lower_report(op, report)

    def _lower_square(self, square: ir.Operation) -> None:
        """toy.square %x -> linalg.generic { mulf %e, %e }."""
        value = square.operands[0]
        rank = ir.RankedTensorType(value.type).rank
        identity = ir.AffineMap.get_identity(rank)
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        with before(square):
            generic = build_generic(
                [value],
                [value],
                [identity, identity],
                [parallel] * rank,
                lambda elements: [arith.mulf(elements[0], elements[0])],
            )
        replace(square, list(generic.results))

    def _lower_report(self, module: ir.Operation, report: ir.Operation) -> None:
        """toy.report %x -> call @report(%x)."""
        types = [value.type for value in report.operands]
        symbols = [ir.StringAttr(op.attributes["sym_name"]).value for op in walk(module, "func.func")]
        if self.callee not in symbols:
            with report.location, ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
                func.FuncOp(self.callee, ir.FunctionType.get(types, []), visibility="private")
        with before(report):
            func.CallOp([], ir.FlatSymbolRefAttr.get(self.callee), list(report.operands))
        report.erase()
