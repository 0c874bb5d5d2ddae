"""Writes the loops of short Fourier transforms: of as many rows at once as a vector has elements.

For each bundle of rows: transpose it, so that the rows' elements k are one vector
                         transform these vectors; take real transforms apart or put them together
                         transpose them back
The last bundle has its last row several times where rows are missing, which is written as often, with the same numbers.
"""

from __future__ import annotations

import numpy as np

from pipeline.analysis.fourier import Transform
from pipeline.ir.constants import as_index
from pipeline.mlir import arith, ir, memref, vector
from pipeline.passes.cpu.microkernel.butterflies import Complex
from pipeline.passes.cpu.microkernel.fourier_steps import Steps, each, each_vector
from pipeline.passes.cpu.microkernel.vector_builders import buffer_size, parallel_loop, plus
from pipeline.passes.cpu.microkernel.vector_planes import Planes
from pipeline.passes.cpu.microkernel.vector_transpose import transposed


class BundleEmitter:
    """Writes the loops of one transform of rows at the insertion point."""

    def __init__(self, source: ir.Value, target: ir.Value, transform: Transform, steps: Steps):
        self._source, self._target = source, target
        self._transform, self._steps = transform, steps
        self._numbers = steps.numbers

    def emit(self) -> None:
        """The whole nest."""
        rows = buffer_size(self._source, 0)
        parallel_loop(as_index(0), rows, self._steps.lanes, lambda first: self._bundle(first, rows))

    def _bundle(self, first: ir.Value, count: ir.Value) -> None:
        last = arith.SubIOp(count, as_index(1)).result
        rows = [arith.MinSIOp(plus(first, lane), last).result for lane in range(self._steps.lanes)]
        m = self._transform.complex_length
        given, made, local = (self._steps.scratch(m) for _ in range(3))
        store = self._steps.store(made)
        self._gather(rows, given)
        if not self._transform.gives_pairs:
            self._pack(rows, given)
        self._steps.transform(m, self._steps.load(given), lambda k, value: store(k, self._scaled(value)), local)
        if not self._transform.takes_pairs:
            self._spectrum(rows, made)
        self._scatter(rows, made)
        for planes in (given, made, local):
            planes.free()

    def _scaled(self, value: Complex) -> Complex:
        return self._numbers.scaled(value, self._transform.scale)

    def _gather(self, rows: list[ir.Value], planes: Planes) -> None:
        """planes[k] = the number k of each row."""
        kind, lanes = self._numbers.kind, self._steps.lanes

        def block(place: ir.Value) -> None:
            start = arith.MulIOp(place, as_index(2)).result
            parts = transposed([vector.LoadOp(kind, self._source, [row, start]).result for row in rows])
            for number in range(lanes // 2):
                self._steps.store(planes)(plus(place, number), (parts[2 * number], parts[2 * number + 1]))

        each_vector(self._transform.complex_length, lanes // 2, block)

    def _scatter(self, rows: list[ir.Value], planes: Planes) -> None:
        """The number k of each row = planes[k]."""
        lanes = self._steps.lanes

        def block(place: ir.Value) -> None:
            start = arith.MulIOp(place, as_index(2)).result
            values = [self._steps.load(planes)(plus(place, number)) for number in range(lanes // 2)]
            parts = transposed([part for value in values for part in value])
            for row, part in zip(rows, parts, strict=True):
                vector.StoreOp(part, self._target, [row, start])

        each_vector(self._transform.complex_length, lanes // 2, block)

    def _pack(self, rows: list[ir.Value], planes: Planes) -> None:
        """Half a spectrum to what has the real numbers as its transform, in pairs; X[0] and X[m] count as real."""
        start = self._steps.load(planes)(as_index(0))[0]
        at = as_index(self._transform.n)
        ends = [memref.LoadOp(self._source, [row, at]).result for row in rows]
        end = vector.FromElementsOp(self._numbers.kind, ends).result
        self._fold(planes, 1.0, 1j)
        first = arith.AddFOp(start, end).result, arith.SubFOp(start, end).result
        self._steps.store(planes)(as_index(0), first)

    def _spectrum(self, rows: list[ir.Value], planes: Planes) -> None:
        """The transform of pairs of real numbers to half a spectrum, whose last number is written at once."""
        re, im = self._steps.load(planes)(as_index(0))
        self._fold(planes, 0.5, -0.5j)
        zero = arith.ConstantOp(self._numbers.kind.element_type, 0.0).result
        self._steps.store(planes)(as_index(0), (arith.AddFOp(re, im).result, self._numbers.constant(0.0)))
        end = arith.SubFOp(re, im).result
        places = [as_index(self._transform.n + part) for part in range(2)]
        for lane, row in enumerate(rows):
            number = vector.ExtractOp(end, [], [lane]).result
            for part, place in zip((number, zero), places, strict=True):
                memref.StoreOp(part, self._target, [row, place])

    def _fold(self, planes: Planes, share: float, turn: complex) -> None:
        """z[k] <- share (z[k] + z'[k]) + turn w^k (z[k] - z'[k]) for 0 < k < m, with z'[k] = conj(z[m - k]).

        Those of k and m - k are made of the same two: what is added for one is subtracted for the other, conjugated.
        """
        m, numbers = self._transform.complex_length, self._numbers
        turns = self._steps.roots(np.arange(m), 2 * m, turn)
        load, store = self._steps.load(planes), self._steps.store(planes)

        def pair(number: ir.Value) -> None:
            k = plus(number, 1)
            other = arith.SubIOp(as_index(m), k).result
            here, mirrored = load(k), numbers.conjugated(load(other))
            both = numbers.scaled(numbers.add(here, mirrored), share)
            odd = numbers.product(numbers.sub(here, mirrored), turns.load_splat(k))
            store(k, numbers.add(both, odd))
            store(other, numbers.conjugated(numbers.sub(both, odd)))

        each(m // 2, 1, pair)
