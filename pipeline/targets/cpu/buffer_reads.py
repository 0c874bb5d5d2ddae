"""What is read of the buffers that functions take, when kernels are loops over vectors."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.ir.attributes import READ
from pipeline.ir.matchers import BUFFER_VIEWS
from pipeline.mlir import called_function, function, ir
from pipeline.runtime.interface.signature import ParameterSource


def unread(module: ir.Module, sources: Sequence[ParameterSource]) -> tuple[int, ...]:
    """The numbers of the prepared tensors that @main doesn't read: with Winograd's algorithm, the direct weights."""
    arguments = function(module, "main").regions[0].blocks[0].arguments
    taken = zip(arguments, sources, strict=False)
    return tuple(source.index for value, source in taken if source.kind == "prepared" and not _is_read(value))


def read_parameters(kernel: ir.Operation) -> tuple[int, ...]:
    """The numbers of the buffers that a function reads, or may read."""
    arguments = kernel.regions[0].blocks[0].arguments
    buffers = [number for number, value in enumerate(arguments) if isinstance(value.type, ir.MemRefType)]
    return tuple(number for number in buffers if _is_read(arguments[number]))


def _is_read(value: ir.Value) -> bool:
    """Whether something reads a buffer, or a view of it, or may do so."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "func.call":
            if _reads(called_function(user), use.operand_number):
                return True
        elif user.name not in BUFFER_VIEWS or any(map(_is_read, user.results)):
            return True
    return False


def _reads(called: ir.Operation, number: int) -> bool:
    """Whether a function reads what it takes as an argument."""
    blocks = called.regions[0].blocks
    if len(blocks):
        return _is_read(blocks[0].arguments[number])
    return READ not in called.attributes or number in list(ir.DenseI64ArrayAttr(called.attributes[READ]))
