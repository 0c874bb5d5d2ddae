"""Writes what becomes of an element that a thread has computed: ops behind it, and stores; what map-to-threads emits.

The elements that ops of one launch hand to each other stay in registers: a buffer that nothing else touches is never
written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.ir.constants import as_index, zero
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.matchers import base
from pipeline.ir.rewriting import copy_body
from pipeline.mlir import affine, arith, defining_op, ir, memref


@dataclass(frozen=True)
class Results:
    """What a launch computes.

    Attributes:
        anchor: the op whose loops the launch runs.
        behind: the elementwise ops that run on its results.
    """

    anchor: LinalgOp
    behind: tuple[LinalgOp, ...] = ()

    def write(self, at: Mapping[int, ir.Value], values: Sequence[ir.Value]) -> None:
        """The anchor's results for one point of its parallel loops: what is behind them, and stores."""
        self.write_together([(at, values)])

    def write_together(self, points: Sequence[tuple[Mapping[int, ir.Value], Sequence[ir.Value]]]) -> None:
        """As `write` for several points; stores come behind all loads, so that those of neighbours can be merged."""
        stores: list[tuple[ir.Value, ir.Value, list[ir.Value]]] = []
        for at, values in points:
            known: dict[ir.Value, ir.Value] = {}
            stores += self._keep(self.anchor, at, values, known)
            for epilogue in self.behind:
                elements = [self._element(epilogue, number, at, known) for number in range(len(epilogue.operands))]
                stores += self._keep(epilogue, at, copy_body(epilogue, elements), known)
        for value, buffer, places in stores:
            memref.StoreOp(value, buffer, places)

    def _keep(
        self,
        view: LinalgOp,
        at: Mapping[int, ir.Value],
        values: Sequence[ir.Value],
        known: dict[ir.Value, ir.Value],
    ) -> list[tuple[ir.Value, ir.Value, list[ir.Value]]]:
        """Notes what an op computes; returns what of it has to be stored, and where."""
        known.update(zip((view.operands[output] for output in view.outputs), values, strict=True))
        return [
            (value, view.operands[output], indices(view.maps[output], at))
            for output, value in zip(view.outputs, values, strict=True)
            if not is_private(view.operands[output])
        ]

    def _element(
        self, epilogue: LinalgOp, number: int, at: Mapping[int, ir.Value], known: dict[ir.Value, ir.Value]
    ) -> ir.Value:
        operand = epilogue.operands[number]
        if number not in epilogue.outputs:
            return known[operand] if operand in known else load(operand, epilogue.maps[number], at)
        return zero(ir.MemRefType(operand.type).element_type)  # elementwise ops do not read what they write


def is_private(buffer: ir.Value) -> bool:
    """Whether a buffer is one that only this launch has."""
    owner = defining_op(base(buffer))
    return owner is not None and owner.name in ("memref.alloc", "memref.alloca")


def load(operand: ir.Value, indexing: ir.AffineMap, at: Mapping[int, ir.Value]) -> ir.Value:
    """The element of an operand at a point of the loops; of a number, itself."""
    if not isinstance(operand.type, ir.MemRefType):
        return operand
    return memref.LoadOp(operand, indices(indexing, at)).result


def indices(indexing: ir.AffineMap, at: Mapping[int, ir.Value]) -> list[ir.Value]:
    """The indices that a map gives for a point of the loops; loops that the point does not name are at 0."""
    values = [at[dim] if dim in at else as_index(0) for dim in range(indexing.n_dims)]
    found = []
    for expression in indexing.results:
        if isinstance(expression, ir.AffineDimExpr):
            found.append(values[ir.AffineDimExpr(expression).position])
        elif isinstance(expression, ir.AffineConstantExpr):
            found.append(as_index(ir.AffineConstantExpr(expression).value))
        else:
            found.append(affine.AffineApplyOp(ir.AffineMap.get(indexing.n_dims, 0, [expression]), values).result)
    return found


def plus(left: ir.Value, right: ir.Value) -> ir.Value:
    """The sum of two indices."""
    return arith.AddIOp(left, right).result


def unravel(number: ir.Value, sizes: Sequence[ir.Value | int]) -> list[ir.Value]:
    """The indices of point `number` of a box, the last one running fastest."""
    places: list[ir.Value] = []
    for position in reversed(range(len(sizes))):
        size = sizes[position]
        if size == 1:
            places.insert(0, as_index(0))
        elif all(outer == 1 for outer in sizes[:position]):
            places.insert(0, number)
        else:
            places.insert(0, arith.RemUIOp(number, as_index(size)).result)
            number = arith.DivUIOp(number, as_index(size)).result
    return places
