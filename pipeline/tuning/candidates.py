"""Which schedules of a kernel are worth measuring."""

from __future__ import annotations

from math import prod

from pipeline.analysis.kernel_ops import IN_REGISTERS, computing_ops
from pipeline.analysis.op_naming import is_product, is_reduction
from pipeline.ir.attributes import KERNEL, WINOGRAD
from pipeline.ir.schedule import Schedule
from pipeline.mlir import ir, walk

#: The scratch of a group, in bytes: parts of the first cache, of the second one.
_SCRATCH = (2048, 4096, 16384, 32768, 131072)

#: The parts of the register file that the accumulators of a tile may take, the likeliest first.
_PARTS = (7 / 8, 3 / 4, 1 / 2, 3 / 8)


def candidates(kernel: ir.Operation, vector_bytes: int, registers: int) -> list[Schedule]:
    """The schedules of a kernel other than the default that may be faster, the likeliest first."""
    kind = ir.StringAttr(kernel.attributes[KERNEL]).value
    products = [op for op in walk(kernel, "linalg.generic") if is_reduction(op) and is_product(op)]
    if kind not in IN_REGISTERS:
        return [Schedule(scratch=scratch) for scratch in _SCRATCH] if len(computing_ops(kernel) or ()) > 1 else []
    if not products:
        return []
    direct = Schedule(winograd=0)
    tiles = _tiles(vector_bytes, registers)
    if any(WINOGRAD in product.attributes for product in products):
        return [direct, *(Schedule(tile.rows, tile.vectors, winograd=0) for tile in tiles[:2])]
    return tiles


def _tiles(vector_bytes: int, registers: int) -> list[Schedule]:
    """Register tiles, with panels as wide as they are or as two vectors."""
    found: dict[Schedule, None] = {}
    lanes = vector_bytes // 4
    for part in _PARTS:
        for vectors in (2, 1, 4, 3):
            rows = int(registers * part) // vectors
            if rows:
                found[Schedule(rows, vectors, columns=prod((max(2, vectors), lanes)))] = None
    return list(found)
