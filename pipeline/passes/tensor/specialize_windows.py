"""specialize-windows: convolutions and pools that are written as linalg.generic get their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.linalg_op import any_structured
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import clone, func, ir, run_pipeline
from pipeline.passmanager.patterns import PatternPass, pattern

#: What ops with windows are called.
_OF_WINDOWS = ("linalg.conv", "linalg.depthwise", "linalg.pooling")


@dataclass(frozen=True)
class SpecializeWindows(PatternPass):
    """Give a linalg.generic that is a convolution or a pool its name, where MLIR has one for it.

    By it layouts, Winograd's algorithm, convolutions by phases and pools are found.
    """

    name: ClassVar[str] = "specialize-windows"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def specialize(self, generic: ir.Operation) -> bool:
        """generic { out + x[.., i + k] * w[k] }   ->   conv(x, w), and likewise for pools"""
        view = any_structured(generic)
        if view is None or not any(view.reductions) or not any(map(_has_windows, view.maps)):
            return False
        return _specialize(generic)


def _has_windows(indexing: ir.AffineMap) -> bool:
    return any(isinstance(expression, ir.AffineAddExpr) for expression in indexing.results)


def _specialize(generic: ir.Operation) -> bool:
    """Has MLIR's pass look at the op alone: it would change others, too."""
    kind = ir.FunctionType.get([operand.type for operand in generic.operands], [each.type for each in generic.results])
    module = ir.Module.create(generic.location)
    with generic.location, ir.InsertionPoint(module.body):
        block = func.FuncOp("main", kind).add_entry_block()
    with generic.location, ir.InsertionPoint(block):
        func.ReturnOp(list(clone(generic, dict(zip(generic.operands, block.arguments, strict=True))).results))
    run_pipeline(module.operation, "builtin.module(func.func(linalg-specialize-generic-ops))")
    made = [op.operation for op in block.operations][:-1]
    if len(made) != 1 or not made[0].name.startswith(_OF_WINDOWS):
        return False
    with before(generic):
        named = clone(made[0], dict(zip(block.arguments, generic.operands, strict=True)))
    replace(generic, list(named.results))
    return True
