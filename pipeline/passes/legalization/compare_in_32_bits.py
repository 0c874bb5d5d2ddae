"""compare-in-32-bits: numbers that fit 32 bits are compared in 32 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, constant_integer, defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class CompareIn32Bits(PatternPass):
    """Compare integers that were extended from 32 bits, counters and small constants in 32 bits.

    Mesa 22.3 gets the comparison of an extended number with a constant wrong: as if it were unsigned. Remove when the
    oldest Mesa that is supported does not.
    """

    name: ClassVar[str] = "compare-in-32-bits"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    @pattern("arith.cmpi")
    def narrow(self, comparison: ir.Operation) -> bool:
        """cmpi slt, (extsi %x : i32 to i64), 3 : i64   ->   cmpi slt, %x, 3 : i32"""
        if str(comparison.operands[0].type) != "i64" or not all(map(_fits, comparison.operands)):
            return False
        with before(comparison):
            left, right = map(_narrow, comparison.operands)
            predicate = ir.IntegerAttr(comparison.attributes["predicate"])
            replace(comparison, [arith.CmpIOp(predicate, left, right).result])
        return True


def _fits(value: ir.Value) -> bool:
    """Whether an i64 is known to be a number of 32 bits."""
    op, number = defining_op(value), constant_integer(value)
    if op is None:
        return False
    if op.name == "arith.extsi":
        return op.operands[0].type == _i32()
    if op.name == "arith.index_cast":
        return isinstance(op.operands[0].type, ir.IndexType)
    return number is not None and -(2**31) <= number < 2**31


def _narrow(value: ir.Value) -> ir.Value:
    """Such a number as an i32."""
    op = defining_op(value)
    assert op is not None
    if op.name == "arith.extsi":
        return op.operands[0]
    if op.name == "arith.index_cast":
        return arith.IndexCastOp(_i32(), op.operands[0]).result
    return arith.ConstantOp(_i32(), constant_integer(value)).result


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)
