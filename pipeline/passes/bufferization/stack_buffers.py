"""Which buffers may lie on the stack of their kernel."""

from __future__ import annotations

from pipeline.mlir import ir

#: Ops whose result is another view of the memory of their first operand.
_VIEWS = ("view", "subview", "cast", "reinterpret_cast", "expand_shape", "collapse_shape", "memory_space_cast")

#: Ops that read or write memory in their place, and keep nothing of it.
_ACCESSES = ("load", "store", "copy", "dim", "dealloc", "extract_strided_metadata", "assume_alignment", "prefetch")


def is_local(buffer: ir.Value) -> bool:
    """Whether a buffer is used in its block, and what is in that, alone: nothing carries it, hands it on or returns it.

    What runs again and allocates such a buffer anew can as well have one for all times.
    """
    return all(_stays(use.owner.operation) for use in buffer.uses)


def _stays(op: ir.Operation) -> bool:
    dialect, _, short = op.name.partition(".")
    if dialect == "memref" and short in _VIEWS:
        return all(map(is_local, op.results))
    if dialect == "memref":
        return short in _ACCESSES
    if op.name == "func.call":
        return not any(isinstance(result.type, ir.MemRefType) for result in op.results)
    return dialect in ("linalg", "vector")
