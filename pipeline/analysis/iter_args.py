"""What loops carry from round to round."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.ir.destination_passing import origin
from pipeline.mlir import ir, terminator


@dataclass(frozen=True)
class Carry:
    """A value that an scf.for or scf.while carries.

    Attributes:
        number: its position among the initial values and among those that the body yields.
        place: its position among the loop's results.
        initial, argument, following, result: before the loop, in the body, for the next round, after the loop.
    """

    number: int
    place: int
    initial: ir.Value
    argument: ir.BlockArgument
    following: ir.Value
    result: ir.OpResult

    @property
    def kind(self) -> ir.Type:
        """Its type."""
        return self.initial.type

    @property
    def is_kept(self) -> bool:
        """Whether it never changes."""
        return self.following == self.argument

    @property
    def is_updated_in_place(self) -> bool:
        """Whether each round writes into what the one before left, as an insertion does."""
        return not self.is_kept and origin(self.following) == self.argument


def carries_of(loop: ir.Operation) -> list[Carry] | None:
    """The carries of an scf.for, or of an scf.while that hands on to its body what it carries; None for others."""
    if loop.name == "scf.for":
        block = loop.regions[0].blocks[0]
        values = zip(list(loop.operands)[3:], list(block.arguments)[1:], yielded(block), loop.results, strict=True)
        return [Carry(number, number, *parts) for number, parts in enumerate(values)]
    before, after = (region.blocks[0] for region in loop.regions)
    following = yielded(after)
    found: list[Carry] = []
    for place, value in enumerate(yielded(before)[1:]):
        if not isinstance(value.owner, ir.Block) or value.owner != before:
            if isinstance(value.type, ir.RankedTensorType):
                return None
            continue
        number = ir.BlockArgument(value).arg_number
        if any(carry.number == number for carry in found):
            return None
        argument, result = after.arguments[place], loop.results[place]
        found.append(Carry(number, place, loop.operands[number], argument, following[number], result))
    return found


def yielded(block: ir.Block) -> list[ir.Value]:
    """What the terminator of a block takes."""
    return list(terminator(block).operands)
