"""vectorize-scans: the steps of a scan, or its lines, become vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.trip_count import trip_count
from pipeline.ir.attributes import LINES, PARALLEL, PLACES, SCAN, TILES
from pipeline.mlir import constant_integer, defining_op, ir, is_inside
from pipeline.passmanager.patterns import PatternPass, pattern

#: Folds whose running values may be combined in any order, since integers wrap around.
_EXACT = ("arith.addi", "arith.muli")

#: Sums of floats, which may be added up in any order where they are wider than what is added.
_SUM = "arith.addf"

_FOLDS = (*_EXACT, _SUM, "arith.mulf")

#: How many bytes of running values are made of those before them at once: more lanes take more steps each.
_LINE_BYTES = 32

#: Elements of so many bits can be loaded and stored under a mask by every processor that has masks.
_WIDTHS = (32, 64)


@dataclass(frozen=True)
class VectorizeScans(PatternPass):
    """Turn scans on buffers, as of cumsum and cumprod, into loops over vectors.

    Where lines lie across rows, as many lines as a vector has lanes go on together, and parts of rows go from row to
    row, a few rows at a time, with their running values in scratch in the nearest cache. Where a line lies along a row,
    a vector of its elements is added up in log2(lanes) steps, and what was there before is added to all of them. That
    is for integers, and for sums that are wider than their terms, as of float32 in float64: sums of parts would round
    otherwise than sums one by one, and products of parts may overflow where those do not. Others, and lines of less
    than a vector, stay loops over elements. The loops around, over lines, become parallel.
    """

    name: ClassVar[str] = "vectorize-scans"
    anchor: ClassVar[str] = "func.func"

    vector_bytes: int = field(default=64, metadata={"help": "the width of a vector register"})

    @pattern("scf.for")
    def vectorize(self, loop: ir.Operation) -> bool:
        """for i { out[i] = s = in[i] + s }   ->   for vectors v { out[v] = sums(in[v]) + s; s += sum(in[v]) }"""
        if SCAN not in loop.attributes:
            return False
        del loop.attributes[SCAN]
        scan = _scan_of(loop)
        lines = _lines_around(loop)
        if isinstance(scan, str):
            self.missed(loop, f"a scan goes on element by element: {scan}")
            _share(lines, PLACES)
            return False
        from pipeline.passes.cpu.microkernel.scan_nests import emit_across_rows, emit_along_line  # slow to import

        bits = scan.running.width
        if scan.is_across(lines):
            lanes = self.vector_bytes * 8 // bits
            self.passed(loop, f"a scan across rows, by vectors of {lanes}")
            _share(lines[1:], TILES)
            emit_across_rows(scan, lines[0], lanes)
            return True
        _share(lines, PLACES)
        lanes = min(self.vector_bytes, _LINE_BYTES) * 8 // bits
        reason = scan.why_not_along(lanes)
        if reason is not None:
            self.missed(loop, f"a scan goes on element by element: {reason}")
            return False
        self.passed(loop, f"a scan along lines, by vectors of {lanes}")
        emit_along_line(scan, lanes)
        return True


def _lines_around(loop: ir.Operation) -> list[ir.Operation]:
    """The loops over lines around one along a line, innermost first."""
    found: list[ir.Operation] = []
    around = loop.parent.operation
    while LINES in around.attributes:
        found.append(around)
        around = around.parent.operation
    return found


def _share(lines: Sequence[ir.Operation], scratch: str) -> None:
    """Marks loops over lines as parallel: they write to different places."""
    for loop in lines:
        if not list(loop.results):
            loop.attributes[PARALLEL] = ir.StringAttr.get(scratch, loop.context)


def _scan_of(loop: ir.Operation) -> Scan | str:
    """The scan that a loop is; why it cannot be one of vectors."""
    *ops, last = [op.operation for op in loop.regions[0].blocks[0].operations]
    by_name = {op.name: op for op in ops}
    load, store = (by_name.get(f"memref.{name}") for name in ("load", "store"))
    fold = defining_op(last.operands[0]) if len(last.operands) == 1 else None
    if load is None or store is None or fold is None or fold.name not in _FOLDS:
        return "it is no running sum or product of what it reads"
    if [constant_integer(loop.operands[number]) for number in (0, 2)] != [0, 1]:
        return "it does not go through a line from its beginning"
    counter, running = loop.regions[0].blocks[0].arguments
    scan = Scan(loop, load, store, fold.name, running.type)
    read = [_before(value, "arith.extf") for value in fold.operands if value != running]
    if read != [load.results[0]] or _before(store.operands[0], "arith.truncf") != last.operands[0]:
        return "it is no running sum or product of what it reads"
    if len(ops) != 3 + (scan.element != scan.running) + (store.operands[0] != last.operands[0]):
        return "it computes something else, too"
    kinds = [ir.MemRefType(value.type) for value in (scan.source, scan.out)]
    if any(kind.element_type.width not in _WIDTHS for kind in kinds):
        return "its elements are small"
    if any(kind.get_strides_and_offset()[0][-1] != 1 for kind in kinds):
        return "its rows do not lie in one piece"
    return scan


def _before(value: ir.Value, conversion: str) -> ir.Value:
    """What a conversion makes a value of; the value if it is no result of one."""
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name == conversion else value


@dataclass(frozen=True)
class Scan:
    """A running sum or product of the elements of a line.

    Attributes:
        loop: the loop along the line.
        load, store: what reads an element, and what writes what they are up to there.
        fold: the op that takes an element in.
        running: the type that it is computed in.
    """

    loop: ir.Operation
    load: ir.Operation
    store: ir.Operation
    fold: str
    running: ir.Type

    @property
    def source(self) -> ir.Value:
        """The buffer of what is read."""
        return self.load.operands[0]

    @property
    def out(self) -> ir.Value:
        """The buffer of what is written."""
        return self.store.operands[1]

    @property
    def element(self) -> ir.Type:
        """The type of what is read."""
        return self.load.results[0].type

    @property
    def counter(self) -> ir.Value:
        """The counter of the loop along the line."""
        return self.loop.regions[0].blocks[0].arguments[0]

    @property
    def places(self) -> tuple[list[ir.Value], list[ir.Value]]:
        """The indices of what is read and of what is written."""
        return list(self.load.operands)[1:], list(self.store.operands)[2:]

    def is_across(self, lines: Sequence[ir.Operation]) -> bool:
        """Whether neighbours belong to different lines, which the innermost of the loops around goes through."""
        if not lines or [constant_integer(lines[0].operands[number]) for number in (0, 2)] != [0, 1]:
            return False
        body = [op.operation for op in lines[0].regions[0].blocks[0].operations]
        column = lines[0].regions[0].blocks[0].arguments[0]
        outside = (self.source, self.out, self.loop.operands[1], self.loop.operands[3])
        return (
            self.loop in body
            and len(body) == 2
            and not list(lines[0].results)
            and not any(is_inside(value, lines[0]) for value in outside)
            and all(place[-1] == column and place.count(column) == 1 for place in self.places)
        )

    def why_not_along(self, lanes: int) -> str | None:
        """Why its steps are no vectors; None if they are."""
        if any(place[-1] != self.counter or place.count(self.counter) != 1 for place in self.places):
            return "its line lies across rows"
        if self.fold not in _EXACT and not (self.fold == _SUM and self.element != self.running):
            return "its elements are to be combined in their order"
        steps = trip_count(self.loop)
        return "its line is shorter than a vector" if steps is not None and steps < lanes else None
