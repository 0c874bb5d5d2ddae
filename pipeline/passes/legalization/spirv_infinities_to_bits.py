"""spirv-infinities-to-bits: constants that are not finite come from integers."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import ir
from pipeline.passmanager.patterns import PatternPass, pattern

#: How a number and its bits are packed, by their width.
_FORMATS = {32: ("<f", "<i"), 64: ("<d", "<q")}


@dataclass(frozen=True)
class SpirvInfinitiesToBits(PatternPass):
    """Make infinities and NaNs of their bits.

    naga, which reads the code, refuses constants that are not finite. Remove when wgpu passes SPIR-V on as it is.
    """

    name: ClassVar[str] = "spirv-infinities-to-bits"
    mandatory: ClassVar[bool] = True

    @pattern("spirv.Constant")
    def make_of_bits(self, constant: ir.Operation) -> bool:
        """spirv.Constant 0x7F800000 : f32   ->   spirv.Bitcast (spirv.Constant 2139095040 : i32)"""
        value = constant.attributes["value"]
        if not isinstance(value, ir.FloatAttr) or math.isfinite(value.value):
            return False
        with before(constant):
            replace(constant, [_from_bits(value.value, constant.results[0].type)])
        return True


def _from_bits(number: float, kind: ir.Type) -> ir.Value:
    as_float, as_integer = _FORMATS[kind.width]
    word = ir.IntegerType.get_signless(kind.width)
    bits = ir.IntegerAttr.get(word, struct.unpack(as_integer, struct.pack(as_float, number))[0])
    raw = ir.Operation.create("spirv.Constant", results=[word], attributes={"value": bits}).result
    return ir.Operation.create("spirv.Bitcast", results=[kind], operands=[raw]).result
