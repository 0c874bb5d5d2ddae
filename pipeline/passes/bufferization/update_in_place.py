"""update-in-place: what a function writes to its arguments is computed in their own memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import IN_PLACE, UPDATED
from pipeline.mlir import ir, terminator
from pipeline.passes.bufferization.donate_argument_buffers import OwnMemory, Refused
from pipeline.passes.bufferization.updated_arguments import Update, sharing, updates_of
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class UpdateInPlace(Pass):
    """Have the new values of arguments that are written to (`pipeline.updated`) computed in the arguments' memory.

    A new value that is the old one with a part exchanged stays where it is. A kernel that computes it from other
    tensors writes it there; so does one that computes each element from the old one of the same place. Where the old
    value is still needed after that, or where its memory is not known, the new value is computed elsewhere and copied.
    Either way the mark becomes `pipeline.in_place`: the function itself writes to the argument. It does not where two
    arguments exchange their values. Runs on kernels in destination-passing style, before bufferization.
    """

    name: ClassVar[str] = "update-in-place"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Does so for one function."""
        memory = OwnMemory(op)
        for update in updates_of(op):
            value = _returned(op)[update.number]
            obstacle = _obstacle(op, update, value)
            if obstacle is not None:
                self.missed(op, f"{update.name} is written to by a copy after the call: {obstacle}")
                _mark(op, update, None)
                continue
            try:
                memory.compute_there(value, update.argument)
                self.passed(op, f"{update.name} is updated in place")
            except Refused as refused:
                self.missed(op, f"{update.name} is updated by a copy: {refused}")
            _mark(op, update, IN_PLACE)
        memory.finish()


def _returned(function: ir.Operation) -> list[ir.Value]:
    block = function.regions[0].blocks[0]
    return list(terminator(block).operands)


def _obstacle(function: ir.Operation, update: Update, value: ir.Value) -> str | None:
    """Why the function must not write to the argument, not even at its end; None if it may."""
    if value.type != update.argument.type:
        return f"it is a {update.argument.type}, its new value a {value.type}"
    later = {other.number for other in updates_of(function)} | {
        other.number for other in updates_of(function, IN_PLACE)
    }
    shared = sharing(update.argument)
    for number, other in enumerate(_returned(function)):
        if number == update.number or other == value or other not in shared:
            continue
        if number in later:
            return "another argument takes its old value"
        if not ir.ShapedType(other.type).has_static_shape:
            return "a result of unknown size may lie in its memory"
    return None


def _mark(function: ir.Operation, update: Update, mark: str | None) -> None:
    """Puts `mark` in the place of `pipeline.updated`."""
    marks = [dict(_named(mark)) for mark in function.attributes["arg_attrs"]]
    mine = marks[update.argument.arg_number]
    number = mine.pop(UPDATED)
    if mark is not None:
        mine[mark] = number
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(mark) for mark in marks])


def _named(marks: ir.Attribute) -> list[tuple[str, ir.Attribute]]:
    return [(mark.name, mark.attr) for mark in ir.DictAttr(marks)]
