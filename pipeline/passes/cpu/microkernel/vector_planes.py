"""Where vectors of complex numbers lie: as pairs in a tensor, or as planes of their parts in scratch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.ir.constants import as_index
from pipeline.mlir import arith, ir, memref, vector
from pipeline.passes.cpu.microkernel.butterflies import Complex
from pipeline.passes.cpu.microkernel.vector_builders import plus, times


@dataclass(frozen=True)
class Pairs:
    """Complex numbers as pairs in the last dim of a buffer.

    Attributes:
        kind: the type of a vector of parts.
        before: the place along the other dims.
    """

    buffer: ir.Value
    kind: ir.VectorType
    before: tuple[ir.Value, ...]

    def load(self, place: ir.Value) -> Complex:
        """The numbers from place on."""
        lanes = self.kind.shape[0]
        low, high = (vector.LoadOp(self.kind, self.buffer, [*self.before, at]).result for at in self._places(place))
        re, im = (vector.ShuffleOp(low, high, list(range(half, 2 * lanes, 2))).result for half in range(2))
        return re, im

    def store(self, place: ir.Value, value: Complex) -> None:
        """Puts numbers from place on."""
        lanes = self.kind.shape[0]
        for half, at in enumerate(self._places(place)):
            first = half * lanes // 2
            mask = [number + part * lanes for number in range(first, first + lanes // 2) for part in range(2)]
            vector.StoreOp(vector.ShuffleOp(*value, mask).result, self.buffer, [*self.before, at])

    def _places(self, place: ir.Value) -> tuple[ir.Value, ir.Value]:
        low = times(place, 2)
        return low, plus(low, self.kind.shape[0])


@dataclass(frozen=True)
class Planes:
    """Complex numbers in scratch of [2 count]: the real parts, then the imaginary ones."""

    buffer: ir.Value
    kind: ir.VectorType
    count: int

    @classmethod
    def scratch(cls, kind: ir.VectorType, count: int) -> Planes:
        """New ones, to be freed."""
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
        buffer = ir.MemRefType.get([2 * count], kind.element_type)
        return cls(memref.AllocOp(buffer, [], [], alignment=alignment).result, kind, count)

    @classmethod
    def table(cls, kind: ir.VectorType, numbers: np.ndarray, function: ir.Operation) -> Planes:
        """Constants, which lie in the code."""
        buffer = ir.MemRefType.get([2 * numbers.size], kind.element_type)
        parts = np.concatenate([numbers.real.ravel(), numbers.imag.ravel()])
        dtype = np.float32 if isinstance(kind.element_type, ir.F32Type) else np.float64
        shape = ir.RankedTensorType.get(buffer.shape, kind.element_type)
        value = ir.DenseElementsAttr.get(parts.astype(dtype), type=shape)
        name = _table(function, buffer, value)
        return cls(memref.GetGlobalOp(buffer, ir.FlatSymbolRefAttr.get(name)).result, kind, numbers.size)

    def load(self, place: ir.Value) -> Complex:
        """The numbers from place on."""
        re, im = (vector.LoadOp(self.kind, self.buffer, [at]).result for at in self._places(place))
        return re, im

    def load_reversed(self, last: ir.Value) -> Complex:
        """The numbers from last - lanes + 1 on, in reversed order."""
        lanes = self.kind.shape[0]
        re, im = self.load(arith.SubIOp(last, as_index(lanes - 1)).result)
        mask = list(range(lanes - 1, -1, -1))
        return vector.ShuffleOp(re, re, mask).result, vector.ShuffleOp(im, im, mask).result

    def load_splat(self, place: ir.Value) -> Complex:
        """One number in every element of the vectors."""
        re, im = (memref.LoadOp(self.buffer, [at]).result for at in self._places(place))
        return vector.BroadcastOp(self.kind, re).result, vector.BroadcastOp(self.kind, im).result

    def store(self, place: ir.Value, value: Complex) -> None:
        """Puts numbers from place on."""
        for part, at in zip(value, self._places(place), strict=True):
            vector.StoreOp(part, self.buffer, [at])

    def free(self) -> None:
        """Ends the life of scratch."""
        memref.DeallocOp(self.buffer)

    def _places(self, place: ir.Value) -> tuple[ir.Value, ir.Value]:
        return place, plus(place, self.count)


def _table(function: ir.Operation, buffer: ir.MemRefType, value: ir.Attribute) -> str:
    """The name of a memref.global of this value beside the function; equal ones are one."""
    block = function.operation.block
    present = [op.operation for op in block.operations if op.operation.name == "memref.global"]
    for table in present:
        if "initial_value" in table.attributes and table.attributes["initial_value"] == value:
            return ir.StringAttr(table.attributes["sym_name"]).value
    name = f"roots_of_unity_{len(present)}"
    with ir.InsertionPoint.at_block_begin(block):
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
        visibility = ir.StringAttr.get("private")
        memref.GlobalOp(
            name, buffer, sym_visibility=visibility, initial_value=value, constant=True, alignment=alignment
        )
    return name


def total(values: Sequence[ir.Value]) -> ir.Value:
    """The sum of indices."""
    result, *rest = values
    for value in rest:
        result = arith.AddIOp(result, value).result
    return result
