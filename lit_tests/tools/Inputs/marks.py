"""A plugin for the tests of the driver: passes that mark, fail, break the IR or take the process down."""

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.mlir import PassManager, ir
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class Mark(Pass):
    """Give each function a unit attribute."""

    name: ClassVar[str] = "test-mark"
    anchor: ClassVar[str] = "func.func"

    label: str = field(default="marked", metadata={"help": "name of the attribute"})
    only: tuple[str, ...] = field(default=(), metadata={"help": "names of the functions, all if empty"})

    def run(self, op: ir.Operation) -> None:
        if self.only and ir.StringAttr(op.attributes["sym_name"]).value not in self.only:
            self.missed(op, "it is not listed")
            return
        op.attributes[self.label] = ir.UnitAttr.get()
        self.passed(op, f"marked '{self.label}'")


@dataclass(frozen=True)
class Fail(Pass):
    """Fail on the first multiplication."""

    name: ClassVar[str] = "test-fail"

    def run(self, op: ir.Operation) -> None:
        def visit(inner: ir.Operation) -> ir.WalkResult:
            if inner.operation.name == "arith.muli":
                products.append(inner.operation)
            return ir.WalkResult.ADVANCE

        products: list[ir.Operation] = []
        op.walk(visit)
        if products:
            self.fail(products[0], "cannot multiply")


@dataclass(frozen=True)
class Break(Pass):
    """Leave a function whose body does not fit its type."""

    name: ClassVar[str] = "test-break"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        op.attributes["function_type"] = ir.TypeAttr(ir.Attribute.parse("() -> ()"))


@dataclass(frozen=True)
class Defect(Pass):
    """Raise an exception that no pass should raise."""

    name: ClassVar[str] = "test-defect"

    def run(self, op: ir.Operation) -> None:
        {}["missing"]


@dataclass(frozen=True)
class Abort(Pass):
    """Make MLIR abort the process."""

    name: ClassVar[str] = "test-abort"

    def run(self, op: ir.Operation) -> None:
        PassManager.parse("func.func(sparsifier)", op.context)
