"""Destination-passing style: which operand an op computes a result into."""

from __future__ import annotations

from pipeline.ir.reshapes import RESHAPES
from pipeline.mlir import called_function, defining_op, ir, terminator


def tied_operand(op: ir.Operation, result: ir.Value) -> ir.Value | None:
    """The operand that a destination-style op updates to make `result`; None for other ops."""
    number = list(op.results).index(result)
    if op.name.startswith("linalg."):
        return op.operands[len(op.operands) - len(op.results) + number]
    if op.name in ("tensor.insert_slice", "tensor.insert"):
        return op.operands[1]
    if op.name == "scf.for":
        return op.operands[3 + number]
    if op.name == "scf.while":
        return _tied_in_while(op, number)
    return _tied_in_call(op, number) if op.name == "func.call" else None


def _tied_in_while(loop: ir.Operation, number: int) -> ir.Value | None:
    """The initial value of a carry that the condition hands on as it is; None for what it computes."""
    block = loop.regions[0].blocks[0]
    handed = terminator(block).operands[1 + number]
    is_carried = isinstance(handed.owner, ir.Block) and handed.owner == block
    return loop.operands[ir.BlockArgument(handed).arg_number] if is_carried else None


def _tied_in_call(call: ir.Operation, number: int) -> ir.Value | None:
    """The operand of a call that the callee updates to make a result, be it in another shape meanwhile."""
    body = called_function(call).regions[0].blocks
    if not len(body):
        return None
    start = terminator(body[0]).operands[number]
    while (reshaped := defining_op(value := origin(start))) is not None and reshaped.name in RESHAPES:
        start = reshaped.operands[0]
    tied = call.operands[ir.BlockArgument(value).arg_number] if isinstance(value.owner, ir.Block) else None
    return tied if tied is not None and tied.type == call.results[number].type else None


def origin(value: ir.Value) -> ir.Value:
    """The value at the start of the chain of updates that made `value`: an empty tensor, a block argument, ..."""
    while True:
        producer = defining_op(value)
        tied = None if producer is None else tied_operand(producer, value)
        if tied is None:
            return value
        value = tied
