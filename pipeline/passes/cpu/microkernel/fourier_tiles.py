"""Writes the loops of a Fourier transform; what tile-and-vectorize emits for an op that is marked as one.

Rows of n = n1 n2 complex numbers, by the four steps of Bailey (1990), each row in the cache:
    for each vector of columns of [n1, n2]: a transform of length n1; a factor for each element, transposed
    for each vector of columns of [n2, n1]: a transform of length n2; that is the result, in order
Short rows are transformed side by side, see `fourier_bundles`.
"""

from __future__ import annotations

import numpy as np

from pipeline.analysis.fourier import Transform
from pipeline.ir.constants import as_index
from pipeline.mlir import arith, ir, memref
from pipeline.passes.cpu.microkernel.butterflies import Butterflies, Complex
from pipeline.passes.cpu.microkernel.fourier_bundles import BundleEmitter
from pipeline.passes.cpu.microkernel.fourier_steps import Load, Steps, Store, each_vector
from pipeline.passes.cpu.microkernel.vector_builders import buffer_size, parallel_loop, plus, times
from pipeline.passes.cpu.microkernel.vector_planes import Pairs, Planes, total
from pipeline.passes.cpu.microkernel.vector_transpose import transposed


class FourierEmitter:
    """Writes the loops of one transform at the insertion point."""

    def __init__(self, op: ir.Operation, transform: Transform, vector_bytes: int, fma: bool, function: ir.Operation):
        self._source, self._target = op.operands[0], op.operands[len(op.operands) - 1]
        self._transform = transform
        element = ir.MemRefType(self._source.type).element_type
        self._lanes = transform.lanes(vector_bytes // (4 if isinstance(element, ir.F32Type) else 8))
        self._kind = ir.VectorType.get([self._lanes], element)
        self._numbers = Butterflies(self._kind, transform.sign, fma)
        self._steps = Steps(self._numbers, function)

    def emit(self) -> None:
        """The whole nest."""
        if self._transform.is_short:
            BundleEmitter(self._source, self._target, self._transform, self._steps).emit()
            return
        rows = buffer_size(self._source, 0)
        parallel_loop(as_index(0), rows, 1, self._row if self._transform.columns is None else self._image)

    def _image(self, image: ir.Value) -> None:
        """[n, 2 c]: the columns of one image."""
        n, columns = self._transform.n, self._transform.columns
        assert columns is not None

        def vectors(column: ir.Value) -> None:
            def load(row: ir.Value) -> Complex:
                return Pairs(self._source, self._kind, (image, row)).load(column)

            def store(row: ir.Value, value: Complex) -> None:
                scaled = self._numbers.scaled(value, self._transform.scale)
                Pairs(self._target, self._kind, (image, row)).store(column, scaled)

            local = Planes.scratch(self._kind, n * self._lanes)
            self._steps.transform(n, load, store, local)
            local.free()

        full = columns // self._lanes * self._lanes
        parallel_loop(as_index(0), as_index(full), self._lanes, vectors)
        if full < columns:  # some columns are done twice
            vectors(as_index(columns - self._lanes))

    def _row(self, row: ir.Value) -> None:
        """[2 n], [n] or [n + 2]: one row."""
        source, target = (Pairs(buffer, self._kind, (row,)) for buffer in (self._source, self._target))
        planes = Planes.scratch(self._kind, self._transform.complex_length + self._lanes)
        if not self._transform.gives_pairs:
            self._packed(source, planes)
            self._complex_row(planes.load, target.store)
        elif not self._transform.takes_pairs:
            self._complex_row(source.load, planes.store)
            self._spectrum(planes, target)
        else:
            self._complex_row(source.load, target.store)
        planes.free()

    def _complex_row(self, load: Load, store: Store) -> None:
        """The four steps."""
        n1, n2 = self._transform.steps()
        work = Planes.scratch(self._kind, n1 * n2)
        local, column = (Planes.scratch(self._kind, n1 * self._lanes) for _ in range(2))

        def first(place: ir.Value) -> None:
            self._steps.transform(n1, lambda j: load(total([times(j, n2), place])), self._steps.store(column), local)
            each_vector(n1, self._lanes, lambda block: self._turn(column, work, place, block))

        def second(place: ir.Value) -> None:
            def put(k: ir.Value, value: Complex) -> None:
                store(total([times(k, n1), place]), value)

            self._steps.transform(n2, lambda j: work.load(total([times(j, n1), place])), put, local)

        each_vector(n2, self._lanes, first)
        each_vector(n1, self._lanes, second)
        for planes in (work, local, column):
            planes.free()

    def _turn(self, column: Planes, work: Planes, place: ir.Value, block: ir.Value) -> None:
        """work[place + j, block + i] = column[block + i, j] * root ** ((block + i) (place + j)), scaled."""
        n1, n2 = self._transform.steps()
        roots = self._steps.roots(np.outer(np.arange(n1), np.arange(n2)), n1 * n2, self._transform.scale)
        values = []
        for lane in range(self._lanes):
            row = plus(block, lane)
            turn = roots.load(total([times(row, n2), place]))
            values.append(self._numbers.product(column.load(times(row, self._lanes)), turn))
        parts = zip(*(transposed([value[part] for value in values]) for part in range(2)), strict=True)
        for lane, value in enumerate(parts):
            work.store(total([times(plus(place, lane), n1), block]), value)

    def _spectrum(self, z: Planes, target: Pairs) -> None:
        """X[k] = (Z[k] + Z'[k]) / 2 - i w^k (Z[k] - Z'[k]) / 2 with Z'[k] = conj(Z[m - k]), Z[m] = Z[0]."""
        m, numbers = self._transform.complex_length, self._numbers
        turns = self._steps.roots(np.arange(m), 2 * m, -0.5j)
        re, im = (memref.LoadOp(z.buffer, [as_index(part * z.count)]).result for part in range(2))
        for part, value in enumerate((re, im)):
            memref.StoreOp(value, z.buffer, [as_index(part * z.count + m)])

        def vectors(k: ir.Value) -> None:
            here = z.load(k)
            mirrored = numbers.conjugated(z.load_reversed(arith.SubIOp(as_index(m), k).result))
            odd = numbers.product(numbers.sub(here, mirrored), turns.load(k))
            target.store(k, numbers.add(numbers.scaled(numbers.add(here, mirrored), 0.5), odd))

        each_vector(m, self._lanes, vectors)
        zero = arith.ConstantOp(self._kind.element_type, 0.0).result
        for part, value in enumerate((arith.SubFOp(re, im).result, zero)):
            memref.StoreOp(value, target.buffer, [*target.before, as_index(2 * m + part)])

    def _packed(self, half: Pairs, z: Planes) -> None:
        """Z[k] = X[k] + X'[k] + i w^k (X[k] - X'[k]) with X'[k] = conj(X[m - k]); X[0] and X[m] count as real."""
        m, numbers = self._transform.complex_length, self._numbers
        turns = self._steps.roots(np.arange(m), 2 * m, 1j)
        given = Planes.scratch(self._kind, m + self._lanes)
        each_vector(m, self._lanes, lambda k: given.store(k, half.load(k)))
        last = memref.LoadOp(half.buffer, [*half.before, as_index(2 * m)]).result
        zero = arith.ConstantOp(self._kind.element_type, 0.0).result
        for value, place in ((last, m), (zero, given.count), (zero, given.count + m)):
            memref.StoreOp(value, given.buffer, [as_index(place)])

        def vectors(k: ir.Value) -> None:
            here = given.load(k)
            mirrored = numbers.conjugated(given.load_reversed(arith.SubIOp(as_index(m), k).result))
            odd = numbers.product(numbers.sub(here, mirrored), turns.load(k))
            z.store(k, numbers.add(numbers.add(here, mirrored), odd))

        each_vector(m, self._lanes, vectors)
        given.free()
