"""Numbers of four bits, two to a byte, in bodies of linalg ops: the lower half first, and which half a loop tells."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, constant_integer, defining_op, ir, linalg

#: How many numbers a byte has.
HALVES = 2

#: How many bytes lie side by side where eight numbers are read as a word.
WORD_BYTES = 4

#: The bits of a number, and what of a byte is left where others are taken away.
BITS, MASK = 4, 15


@dataclass(frozen=True)
class Nibble:
    """A number of four bits in a body.

    Attributes:
        value: the number, 0 to 15, as an i8.
        operand: the number of the input whose bytes it is taken from.
        loop: the loop that tells which half of the byte it is.
    """

    value: ir.Value
    operand: int
    loop: int


def half_of(byte: ir.Value, loop: int) -> ir.Value:
    """Builds a number of 0 to 15: the half of a byte that the counter of a loop tells.

    (byte >> 4 * index) & 15
    """
    counter = arith.IndexCastUIOp(byte.type, linalg.IndexOp(loop).result).result
    shift = arith.MulIOp(counter, arith.ConstantOp(byte.type, BITS).result).result
    return arith.AndIOp(arith.ShRUIOp(byte, shift).result, arith.ConstantOp(byte.type, MASK).result).result


def nibble_of(view: LinalgOp) -> Nibble | None:
    """What `half_of` has built in a body; None if there is no such thing."""
    for op in view.body_ops:
        if op.name != "arith.andi" or constant_integer(op.operands[1]) != MASK:
            continue
        shift = defining_op(op.operands[0])
        loop = _shifting_loop(shift) if shift is not None and shift.name == "arith.shrui" else None
        if shift is not None and loop is not None and shift.operands[0] in list(view.body.arguments)[: view.inputs]:
            return Nibble(op.results[0], ir.BlockArgument(shift.operands[0]).arg_number, loop)
    return None


def _shifting_loop(shift: ir.Operation) -> int | None:
    """The loop by whose counter, times the bits of a number, something is shifted."""
    times = defining_op(shift.operands[1])
    if times is None or times.name != "arith.muli" or constant_integer(times.operands[1]) != BITS:
        return None
    cast = defining_op(times.operands[0])
    if cast is None or cast.name not in ("arith.index_cast", "arith.index_castui"):
        return None
    counter = defining_op(cast.operands[0])
    return (
        None if counter is None or counter.name != "linalg.index" else ir.IntegerAttr(counter.attributes["dim"]).value
    )
