"""Where kernels write: finding the tensor that a value is computed into, and putting memory in its place.

Kernels are in destination-passing style by then (see `outline-kernels`): a call takes the tensors that it computes
into. Memory is a `memref.alloc` or a view, seen as a tensor through `bufferization.to_tensor`.
"""

from __future__ import annotations

from pipeline.ir.destination_passing import tied_operand
from pipeline.ir.reshapes import RESHAPES
from pipeline.mlir import bufferization, defining_op, has_one_use, ir, linalg, terminator

_CAST = "tensor.cast"


def place_of(value: ir.Value) -> ir.Operation | None:
    """What makes the memory that `value`, and nothing else, is computed into: a tensor.empty or a memref.alloc.

    Looks through reshapes, casts of sizes, concatenations and branches. None where that is not known: it comes from
    outside, say.
    """
    op = defining_op(value)
    if op is None:
        return None
    if op.name in (*RESHAPES, _CAST):
        return place_of(op.operands[0])
    if op.name == "func.call":
        return _place_of_call(op, ir.OpResult(value).result_number)
    if op.name == "tensor.insert_slice":
        return _place_of_destination(op.operands[1])
    if op.name == "bufferization.materialize_in_destination":
        return _memory(op.operands[1])
    if op.name == "bufferization.to_tensor":
        return _memory(value)
    if op.name == "scf.if":
        number = ir.OpResult(value).result_number
        one, other = (place_of(terminator(region.blocks[0]).operands[number]) for region in op.regions)
        return one if one is not None and other is not None and one == other else None
    return None


def start_of(value: ir.Value, block: ir.Block) -> tuple[ir.Operation, int] | None:
    """The op and the number of its operand by which `value` begins as an argument of `block`.

    Kernels write parts of it. Looks through reshapes. None where it is computed otherwise, or by no kernel at all.
    """
    found, by_kernel = None, False
    while (op := defining_op(value)) is not None:
        if op.name in RESHAPES and has_one_use(op.results[0]):  # others read what is there before
            found = op, 0
        elif op.name == "func.call" and (tied := tied_operand(op, value)) is not None:
            found, by_kernel = (op, list(op.operands).index(tied)), True
        else:
            return None
        value = found[0].operands[found[1]]
    return found if by_kernel and value in list(block.arguments) else None


def begin_in(start: tuple[ir.Operation, int], memory: ir.Value) -> None:
    """Has what begins as an argument (see `start_of`) begin as a copy of it in `memory`, a memref of the same shape."""
    op, number = start
    with op.location, ir.InsertionPoint(op):
        place = bufferization.ToTensorOp(op.operands[number].type, memory, restrict=True, writable=True).result
        op.operands[number] = linalg.copy(op.operands[number], outs=[place])


def put(place: ir.Operation, memory: ir.Value) -> None:
    """Has the kernels that compute into `place` write to `memory`, a memref of the same shape; erases `place`."""
    if place.name == "memref.alloc":
        place.results[0].replace_all_uses_with(memory)
    else:
        with place.location, ir.InsertionPoint(place):
            tensor = bufferization.ToTensorOp(place.results[0].type, memory, restrict=True, writable=True).result
        place.results[0].replace_all_uses_with(tensor)
    place.erase()


def shape_of(place: ir.Operation) -> list[int] | None:
    """The sizes of the memory at a place; None if they are known at run time only."""
    kind = ir.ShapedType(place.results[0].type)
    return list(kind.shape) if kind.has_static_shape else None


def _place_of_call(call: ir.Operation, number: int) -> ir.Operation | None:
    destination = tied_operand(call, call.results[number])
    return None if destination is None else _place_of_destination(destination)


def _place_of_destination(destination: ir.Value) -> ir.Operation | None:
    """What makes the memory that an op is given to write to, if nothing else does anything with that."""
    op = defining_op(destination)
    if op is not None and op.name in ("tensor.empty", "tensor.insert_slice", "func.call", _CAST):
        if len(list(destination.uses)) != 1:
            return None
        if op.name == "func.call":  # a kernel writes parts of what another one has computed
            return _place_of_call(op, ir.OpResult(destination).result_number)
        return op if op.name == "tensor.empty" else _place_of_destination(op.operands[int(op.name != _CAST)])
    return _memory(destination)


def _memory(tensor: ir.Value) -> ir.Operation | None:
    """The alloc behind a to_tensor."""
    op = defining_op(tensor)
    alloc = None if op is None or op.name != "bufferization.to_tensor" else defining_op(op.operands[0])
    return alloc if alloc is not None and alloc.name == "memref.alloc" else None
