"""MLIR's bytecode: where it lies in bytes, and the module that it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.mlir import ir

#: What MLIR's bytecode begins with.
MAGIC = b"ML\xefR"

#: What portable StableHLO names itself, after the version of the bytecode's format.
_PORTABLE = b"StableHLO_v"


def inner_bytecode(data: bytes) -> bytes | None:
    """The bytecode that bytes are or contain; None if there is none.

    `Exported.serialize()` of JAX gives a flatbuffer, in which the bytecode stands after its length in four bytes.
    """
    if data.startswith(MAGIC):
        return data
    at = data.find(MAGIC)
    if at < 4:
        return None
    length = int.from_bytes(data[at - 4 : at], "little")
    return data[at : at + length] if 0 < length <= len(data) - at else None


def read_bytecode(data: bytes, context: ir.Context) -> ir.Module:
    """The module of bytecode; of portable StableHLO in today's version. Raises MLIR's error; may end the process."""
    from pipeline.mlir import ir, portable_stablehlo

    return portable_stablehlo(data, context) if _PORTABLE in data[:64] else ir.Module.parse(data, context)
