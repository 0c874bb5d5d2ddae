"""call-externals: kernels that are functions from outside call them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import CALLS, OUTPUTS, SIZES
from pipeline.mlir import arith, func, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class CallExternals(PatternPass):
    """Put a call in the place of the body of each kernel that is marked `pipeline.calls`, once kernels take buffers.

    Until then its body stood for what the function does: which buffers it reads and writes, and which it gives back.
    The call goes to a function `@kernel.external`, which is declared with MLIR's C interface and linked by the runtime.
    """

    name: ClassVar[str] = "call-externals"

    @pattern("func.func", outermost=True)
    def call(self, kernel: ir.Operation) -> bool:
        """func @kernel(%x) { body }   ->   func @kernel.external(%x); func @kernel(%x) { call @kernel.external(%x) }"""
        if CALLS not in kernel.attributes or not len(kernel.regions[0].blocks):
            return False
        kind = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
        if kind.results:
            self.fail(
                kernel, "a function that is called from outside must write its results to buffers that it is given"
            )
        _, _, *numbers = ir.ArrayAttr(kernel.attributes[CALLS])
        i64 = ir.IntegerType.get_signless(64)
        sizes = [ir.IntegerAttr(size).value for size in ir.ArrayAttr(kernel.attributes[SIZES])]
        passed = [index for index in range(len(kind.inputs)) if index not in sizes]
        types = [*(kind.inputs[index] for index in passed), *(i64 for _ in numbers)]
        name = f"{ir.StringAttr(kernel.attributes['sym_name']).value}.external"
        with kernel.location, ir.InsertionPoint(kernel):
            declared = func.FuncOp(name, ir.FunctionType.get(types, []), visibility="private").operation
            declared.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
            for mark in (CALLS, OUTPUTS):
                declared.attributes[mark] = kernel.attributes[mark]
        block = kernel.regions[0].blocks[0]
        old = [op.operation for op in block.operations]
        with kernel.location, ir.InsertionPoint(old[0]):
            values = [arith.ConstantOp(i64, ir.IntegerAttr(number).value).result for number in numbers]
            func.CallOp([], ir.FlatSymbolRefAttr.get(name), [*(block.arguments[index] for index in passed), *values])
            func.ReturnOp([])
        for op in reversed(old):
            op.erase()
        return True
