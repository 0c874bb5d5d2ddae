"""Writes scans as loops over vectors: of lines that lie side by side, or along a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.analysis.trip_count import trip_count
from pipeline.ir.attributes import PARALLEL, TILES
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, constant_integer, function_around, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel.vector_builders import combine, floor_to, plus, splat_of, zeros

if TYPE_CHECKING:
    from pipeline.passes.cpu.vectorize_scans import Scan

#: How many lines are gone through side by side: their running values stay in the nearest cache.
_COLUMNS = 1024

#: How many rows are taken at a time: running values are loaded and stored once for all of them.
_ROWS = 4


def emit_across_rows(scan: Scan, lines: ir.Operation, lanes: int) -> None:
    """for l { for i { .. } }   ->   for parts of rows { for i, four at a time { for vectors of the part { .. } } }

    The loop `lines` goes along rows, and that of the scan from row to row.
    """
    total = lines.operands[1]
    width = constant_integer(total)
    columns = _COLUMNS if width is None else min(_COLUMNS, -(-width // lanes) * lanes)
    with lines.location, ir.InsertionPoint.at_block_begin(function_around(lines).regions[0].blocks[0]):
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
        kept = ir.MemRefType.get([columns], scan.running)
        running = memref.AllocaOp(kept, [], [], alignment=alignment).result
    with before(lines):
        parts = scf.ForOp(as_index(0), total, as_index(columns))
        parts.operation.attributes[PARALLEL] = ir.StringAttr.get(TILES)
        with ir.InsertionPoint(parts.body):
            begin = parts.induction_variable
            size = total
            if width is None or width > columns:
                size = arith.MinSIOp(arith.SubIOp(total, begin).result, as_index(columns)).result
            _Part(scan, lines.regions[0].blocks[0].arguments[0], lanes, running, begin, size).emit()
            scf.YieldOp([])
    lines.erase()


@dataclass(frozen=True)
class _Part:
    """Lines that are gone through side by side.

    Attributes:
        column: what the places of the scan have for the number of a line.
        running: a buffer of what the lines are up to.
        begin, size: the number of the first line, and how many there are.
    """

    scan: Scan
    column: ir.Value
    lanes: int
    running: ir.Value
    begin: ir.Value
    size: ir.Value

    def emit(self) -> None:
        """All steps of these lines."""
        first = vector.BroadcastOp(self._kind, self.scan.loop.operands[3]).result
        _loop(as_index(0), self.size, self.lanes, lambda at: vector.StoreOp(first, self.running, [at]))
        steps = self.scan.loop.operands[1]
        several = _floor(steps, _ROWS)
        _loop(as_index(0), several, _ROWS, lambda row: self._rows(row, _ROWS))
        _loop(several, steps, 1, lambda row: self._rows(row, 1))

    @property
    def _kind(self) -> ir.VectorType:
        return ir.VectorType.get([self.lanes], self.scan.running)

    def _rows(self, row: ir.Value, count: int) -> None:
        """A few steps of all lines; the last lines, which are less than a vector, under a mask."""
        full = _floor(self.size, self.lanes)
        _loop(as_index(0), full, self.lanes, lambda at: self._vector(row, count, at, None))
        mask = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(1))

        def last(at: ir.Value) -> None:
            rest = arith.SubIOp(self.size, at).result
            self._vector(row, count, at, vector.CreateMaskOp(mask, [rest]).result)

        _loop(full, self.size, self.lanes, last)

    def _vector(self, row: ir.Value, count: int, at: ir.Value, mask: ir.Value | None) -> None:
        """A few steps of as many lines as a vector has lanes."""
        value = vector.LoadOp(self._kind, self.running, [at]).result
        column = arith.AddIOp(self.begin, at).result
        for step in range(count):
            places = _Places(self.scan, {self.scan.counter: plus(row, step), self.column: column}, mask)
            value = combine(self.scan.fold, places.load(self.lanes), value)
            places.store(value)
        vector.StoreOp(value, self.running, [at])


@dataclass(frozen=True)
class _Places:
    """Where a scan is: what its indices are."""

    scan: Scan
    known: Mapping[ir.Value, ir.Value]
    mask: ir.Value | None = None

    def load(self, lanes: int) -> ir.Value:
        """A vector of what is read, in the type that the scan is computed in."""
        kind, place = ir.VectorType.get([lanes], self.scan.element), self._at(self.scan.places[0])
        if self.mask is None:
            value = vector.LoadOp(kind, self.scan.source, place).result
        else:
            value = vector.MaskedLoadOp(kind, self.scan.source, place, self.mask, zeros(kind)).result
        return value if self.scan.element == self.scan.running else _extended(value, self.scan.running)

    def store(self, value: ir.Value) -> None:
        """Stores a vector of running values."""
        element, place = ir.MemRefType(self.scan.out.type).element_type, self._at(self.scan.places[1])
        if element != self.scan.running:
            kind = ir.VectorType.get(ir.VectorType(value.type).shape, element)
            value = arith.TruncFOp(kind, value).result
        if self.mask is None:
            vector.StoreOp(value, self.scan.out, place)
        else:
            vector.MaskedStoreOp(self.scan.out, place, self.mask, value)

    def _at(self, indices: Sequence[ir.Value]) -> list[ir.Value]:
        return [self.known.get(index, index) for index in indices]


def emit_along_line(scan: Scan, lanes: int) -> None:
    """for i { .. }   ->   for vectors { .. }; for what is left of the line { .. }"""
    loop = scan.loop
    with before(loop):
        kind = ir.VectorType.get([lanes], scan.running)
        full = _floor(loop.operands[1], lanes)
        first = vector.BroadcastOp(kind, loop.operands[3]).result
        vectors = scf.ForOp(as_index(0), full, as_index(lanes), [first])
        with ir.InsertionPoint(vectors.body):
            (before_it,) = vectors.inner_iter_args
            places = _Places(scan, {scan.counter: vectors.induction_variable})
            sums = _sums(places.load(lanes), scan.fold)
            places.store(combine(scan.fold, sums, before_it))
            whole = vector.ShuffleOp(sums, sums, [lanes - 1] * lanes).result
            scf.YieldOp([combine(scan.fold, whole, before_it)])
        running = vector.ExtractOp(vectors.results[0], [], [0]).result
    loop.operands[0], loop.operands[3] = full, running
    if trip_count(loop) == 0:
        replace(loop, [running])


def _sums(value: ir.Value, fold: str) -> ir.Value:
    """[a, b, c, d]   ->   [a, a + b, b + c, c + d]   ->   [a, a + b, a + b + c, a + b + c + d]"""
    kind = ir.VectorType(value.type)
    lanes, none = kind.shape[0], splat_of(kind, fold)
    shift = 1
    while shift < lanes:
        moved = vector.ShuffleOp(none, value, [*range(shift), *range(lanes, 2 * lanes - shift)]).result
        value = combine(fold, moved, value)
        shift *= 2
    return value


def _extended(value: ir.Value, element: ir.Type) -> ir.Value:
    """A vector of floats in a wider type."""
    return arith.ExtFOp(ir.VectorType.get(ir.VectorType(value.type).shape, element), value).result


def _floor(value: ir.Value, step: int) -> ir.Value:
    """The largest multiple of a step that is not larger than an index: a constant if that is one."""
    known = constant_integer(value)
    return floor_to(value, step) if known is None else as_index(known // step * step)


def _loop(first: ir.Value, last: ir.Value, step: int, body: Callable[[ir.Value], object]) -> None:
    """A loop; nothing where it is known not to run."""
    bounds = constant_integer(first), constant_integer(last)
    if bounds[0] is not None and bounds[0] == bounds[1]:
        return
    loop = scf.ForOp(first, last, as_index(step))
    with ir.InsertionPoint(loop.body):
        body(loop.induction_variable)
        scf.YieldOp([])
