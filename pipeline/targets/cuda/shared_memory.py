"""Where the buffers lie that the threads of a block share: in memory of the kernel, or that its launches ask for.

A kernel may declare 48 KB; more there is for those whose launches say how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pipeline.ir.constants import as_index
from pipeline.mlir import gpu, ir, memref, symbol_name, walk

#: What a kernel may declare.
_MOST_STATIC = 48 * 1024

#: What each buffer starts at a multiple of in the memory that launches ask for, as wgmma wants it.
_ALIGNMENT = 1024


def dynamic_bytes(allocations: Sequence[ir.Operation]) -> int:
    """How much the launch has to ask for; 0 where the kernel can declare its buffers."""
    if sum(map(_bytes, allocations)) <= _MOST_STATIC:
        return 0
    return sum(map(_padded, allocations))


def declared(allocations: Sequence[ir.Operation]) -> str:
    """The buffers as a kernel declares them."""
    tiles = [f"%s{n}: {op.results[0].type} {{llvm.align = {_alignment(op)}}}" for n, op in enumerate(allocations)]
    return f"workgroup({', '.join(tiles)})" if tiles else ""


def _alignment(allocation: ir.Operation) -> int:
    """16, for wide accesses, or what it says itself."""
    named = allocation.attributes
    return max(16, ir.IntegerAttr(named["alignment"]).value if "alignment" in named else 0)


def views(allocations: Sequence[ir.Operation]) -> list[ir.Value]:
    """The buffers, one behind the other in the memory that the launch asks for."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    whole = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8), memory_space=space)
    memory = gpu.DynamicSharedMemoryOp(whole).result
    found, offset = [], 0
    for op in allocations:
        found.append(memref.ViewOp(op.results[0].type, memory, as_index(offset), []).result)
        offset += _padded(op)
    return found


def make_external(module: ir.Module) -> None:
    """The lowered memory of launches: declared, for the driver provides it, and aligned."""
    for memory in walk(module, "llvm.mlir.global"):
        if symbol_name(memory).startswith("__dynamic_shmem"):
            memory.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
            memory.attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _ALIGNMENT)


def _padded(allocation: ir.Operation) -> int:
    return -(-_bytes(allocation) // _ALIGNMENT) * _ALIGNMENT


def _bytes(allocation: ir.Operation) -> int:
    kind = ir.MemRefType(allocation.results[0].type)
    return prod(kind.shape) * -(-kind.element_type.width // 8)
