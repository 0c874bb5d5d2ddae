"""spirv-signed-types: ops on signed integers have signed types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before
from pipeline.mlir import defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern

#: Ops that naga computes by the sign of their types instead of what they are: their operands and results, all integers.
_SIGNED = {
    *("spirv.GL.SMin", "spirv.GL.SMax", "spirv.GL.SClamp", "spirv.GL.SAbs", "spirv.GL.SSign", "spirv.SConvert"),
    *("spirv.ShiftRightArithmetic", "spirv.SDiv", "spirv.SRem", "spirv.SMod", "spirv.SNegate"),
    *("spirv.ConvertSToF", "spirv.ConvertFToS"),
}


@dataclass(frozen=True)
class SpirvSignedTypes(PatternPass):
    """Give ops on signed integers signed types, with casts around them.

    MLIR's integers have no sign, which its serializer writes as unsigned. It does not matter in SPIR-V, but naga, which
    translates the code for wgpu, goes by the type. Remove when wgpu passes SPIR-V on as it is.
    """

    name: ClassVar[str] = "spirv-signed-types"
    mandatory: ClassVar[bool] = True

    @pattern(*_SIGNED)
    def sign(self, op: ir.Operation) -> bool:
        """GL.SMin %x, %y : i32   ->   Bitcast (GL.SMin (Bitcast %x), (Bitcast %y) : si32)"""
        with before(op):
            for number, operand in enumerate(list(op.operands)):
                if isinstance(operand.type, ir.IntegerType):
                    op.operands[number] = _cast(operand, ir.IntegerType.get_signed(operand.type.width))
        _cast_result(op)
        return True


def _cast_result(op: ir.Operation) -> None:
    kind = op.results[0].type
    if isinstance(kind, ir.IntegerType):
        with op.location, ir.InsertionPoint.after(op):
            op.results[0].set_type(ir.IntegerType.get_signed(kind.width))
            result = _cast(op.results[0], kind)
            op.results[0].replace_all_uses_except(result, defining_op(result))


def _cast(value: ir.Value, kind: ir.Type) -> ir.Value:
    return ir.Operation.create("spirv.Bitcast", results=[kind], operands=[value]).result
