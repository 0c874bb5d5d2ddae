"""Fourier transforms of whole vectors, of lengths up to 100: what all loops of transforms are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.fourier_lengths import IN_REGISTERS, in_registers
from pipeline.ir.constants import as_index
from pipeline.mlir import ir, scf
from pipeline.passes.cpu.microkernel.butterflies import Butterflies, Complex
from pipeline.passes.cpu.microkernel.vector_builders import plus, times
from pipeline.passes.cpu.microkernel.vector_planes import Planes

#: (where) → the vector that lies there; (where, vector) → it lies there.
Load = Callable[[ir.Value], Complex]
Store = Callable[[ir.Value, Complex], None]


@dataclass(frozen=True)
class Steps:
    """Transforms along numbers that are vectors, each element of which belongs to another transform.

    Attributes:
        numbers: arithmetic on the vectors.
        function: which tables of roots lie beside.
    """

    numbers: Butterflies
    function: ir.Operation

    @property
    def lanes(self) -> int:
        """The elements of the vectors."""
        return self.numbers.kind.shape[0]

    def transform(self, n: int, load: Load, store: Store, local: Planes) -> None:
        """One of length n, in two steps through `local`, of n vectors, where it is too long for registers."""
        if n in IN_REGISTERS:
            values = self.numbers.transform([load(as_index(j)) for j in range(n)])
            for k, value in enumerate(values):
                store(as_index(k), value)
            return
        steps = in_registers(n)
        assert steps is not None
        n1, n2 = steps
        roots = self.roots(np.outer(np.arange(n1), np.arange(n2)), n)

        def first(j: ir.Value) -> None:
            values = self.numbers.transform([load(plus(j, k * n2)) for k in range(n1)])
            for k, value in enumerate(values):
                place = plus(j, k * n2)
                turned = self.numbers.product(value, roots.load_splat(place)) if k else value
                local.store(times(place, self.lanes), turned)

        def second(k: ir.Value) -> None:
            start = times(k, n2)
            given = [local.load(times(plus(start, j), self.lanes)) for j in range(n2)]
            for number, value in enumerate(self.numbers.transform(given)):
                store(plus(k, number * n1), value)

        each(n2, 1, first)
        each(n1, 1, second)

    def roots(self, powers: np.ndarray, n: int, factor: complex = 1.0) -> Planes:
        """exp(sign 2 pi i k / n) for each power k, in float64 until they are rounded, times a factor."""
        angles = self.numbers.sign * 2 * np.pi / n * (powers % n)
        return Planes.table(self.numbers.kind, factor * (np.cos(angles) + 1j * np.sin(angles)), self.function)

    def scratch(self, count: int) -> Planes:
        """Memory for so many vectors, to be freed."""
        return Planes.scratch(self.numbers.kind, count * self.lanes)

    def load(self, planes: Planes) -> Load:
        """The vectors that `store` has put."""
        return lambda number: planes.load(times(number, self.lanes))

    def store(self, planes: Planes) -> Store:
        """One vector behind the other."""
        return lambda number, value: planes.store(times(number, self.lanes), value)


def each_vector(count: int, lanes: int, body: Callable[[ir.Value], None]) -> None:
    """A loop over whole vectors; where they don't fill the count, the last one overlaps with that before it."""
    full = count // lanes * lanes
    each(full, lanes, body)
    if full < count:
        body(as_index(count - lanes))


def each(count: int, step: int, body: Callable[[ir.Value], None]) -> None:
    """A loop, unless it has one iteration only."""
    if count == step:
        body(as_index(0))
        return
    loop = scf.ForOp(as_index(0), as_index(count), as_index(step))
    with ir.InsertionPoint(loop.body):
        body(loop.induction_variable)
        scf.YieldOp([])
