"""Writes sums of products of dequantized factors: groups are scaled as sums, nibbles come from tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from pipeline.analysis.scaled_sum import ScaledSum, scaled_sum_of
from pipeline.ir.constants import as_index
from pipeline.ir.intrinsics import call_intrinsic
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.nibbles import BITS, HALVES, MASK, WORD_BYTES
from pipeline.mlir import arith, ir, vector
from pipeline.passes.cpu.microkernel.factor_tile import FactorTile, Term
from pipeline.passes.cpu.microkernel.vector_builders import splat_of_number, zeros

_PERMUTE = {ir.F32Type: "llvm.x86.avx512.permvar.sf.512", ir.IntegerType: "llvm.x86.avx512.permvar.si.512"}

#: How many elements a table has, which are as many as a vector of f32.
LANES = 16


class DequantizedTile(FactorTile):
    """A tile of sums of data * core, beside sums of data if the factor has a shift.

    Attributes:
        panel: what the cores are, by the loops of the sum and along vectors, if that has been computed before.
        terms_of_word: how many terms a vector of it is for.
    """

    panel: ir.Value | None = None
    terms_of_word: ClassVar[int] = 1

    @staticmethod
    def read(view: LinalgOp) -> ScaledSum | None:
        """The sum that an op is, if such tiles compute it."""
        return scaled_sum_of(view)

    @cached_property
    def sum(self) -> ScaledSum:
        """What is summed up."""
        found = self.read(self.stage.view)
        assert found is not None
        return found

    @property
    def weight(self) -> int:
        """The number of the input that is quantized."""
        return self.sum.weight

    @cached_property
    def data_places(self) -> list[tuple[int, int]]:
        """Those whose data differ, if it is summed up."""
        found = [self.place(self.sum.data, *place) for place in self.places] if self.sum.has_shift else []
        return list(dict.fromkeys(found))

    def starts(self) -> list[ir.Value]:
        """What the sums begin with."""
        zero = zeros(ir.VectorType.get([self.stage.tile.lanes], ir.F32Type.get()))
        return [zero] * (len(self.places) + len(self.data_places))

    def add_terms(self, terms: Sequence[Term], sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums plus the products at some places.

        Where vectors of a row read weights of their own, one is done with before the next one is loaded.
        """
        results = list(sums)
        own = self.place(self.sum.core, self.position.rows - 1, 0)[0] > 0
        turns = [(term, number) for number in range(len(self.places)) for term in terms]
        if not own:
            turns = [(term, number) for term in terms for number in range(len(self.places))]
        for term, number in turns:
            place = self.places[number]
            data, core = self.value(self.sum.data, term, *place), self.word([term], *place)
            results[number] = self.multiply_add(data, core, results[number])
        for term in terms:
            for number, place in enumerate(self.data_places, len(self.places)):
                data = self.value(self.sum.data, term, *place)
                results[number] = arith.AddFOp(results[number], data).result
        return results

    def word(self, terms: Sequence[Term], row: int, column: int) -> ir.Value:
        """A vector of the core of a term."""
        (term,) = terms
        return self.value(self.sum.core, term, row, column) if self.panel is None else self.from_panel(term, column)

    @property
    def reads_panel(self) -> bool:
        """Whether cores are there already."""
        return self.panel is not None

    def from_panel(self, term: Term, column: int) -> ir.Value:
        """What `word` has been at a place."""
        assert self.panel is not None
        kind = ir.VectorType.get([self.stage.tile.lanes], ir.MemRefType(self.panel.type).element_type)
        return vector.LoadOp(kind, self.panel, self.place_in_panel(term, column)).result

    def place_in_panel(self, term: Term, column: int) -> list[ir.Value]:
        """Where a vector lies in a panel."""
        *outer, last = [term.at[loop] for loop in self.stage.view.summed]
        if self.terms_of_word > 1:
            last = arith.DivUIOp(last, as_index(self.terms_of_word)).result
        return [*outer, last, as_index(column * self.stage.tile.lanes)]

    def compute(self, at: dict[int, ir.Value], accumulators: list[ir.Value], given: object = None) -> list[ir.Value]:
        """See `RegisterTile.compute`: the sums plus the products of one place."""
        self.prefetch(at, 1)
        return self.add_terms([Term(at)], accumulators)

    def scaled(self, at: dict[int, ir.Value], totals: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        """Totals plus what sums are with their scales and shifts."""
        term, results = Term(at), []
        data = dict(zip(self.data_places, sums[len(self.places) :], strict=True))
        for place, total, part in zip(self.places, totals, sums, strict=False):
            scale, shift = self._scale_and_shift(term, *place)
            result = total
            if shift is not None:
                result = self.multiply_add(data[self.place(self.sum.data, *place)], shift, result)
            results.append(
                arith.AddFOp(part, result).result if scale is None else self.multiply_add(part, scale, result)
            )
        return results

    def _scale_and_shift(self, term: Term, row: int, column: int) -> tuple[ir.Value | None, ir.Value | None]:
        """core * scale + shift; None for 1 and for 0."""
        scale: ir.Value | None = None
        shift: ir.Value | None = None
        core = self.sum.core
        for op in self.sum.steps:
            (other,) = [operand for operand in op.operands if operand != core]
            value = self.value(other, term, row, column)
            core = op.results[0]
            if op.name == "arith.mulf":
                scale = value if scale is None else arith.MulFOp(scale, value).result
                shift = None if shift is None else arith.MulFOp(shift, value).result
            elif op.name == "arith.divf":
                scale = splat_of_number(value.type, 1.0) if scale is None else scale
                scale = arith.DivFOp(scale, value).result
                shift = None if shift is None else arith.DivFOp(shift, value).result
            else:
                signed = value if op.name == "arith.addf" else arith.NegFOp(value).result
                shift = signed if shift is None else arith.AddFOp(shift, signed).result
        return scale, shift

    def halves(self, at: dict[int, ir.Value], loop: int) -> list[Term]:
        """The terms of the two nibbles of a byte."""
        nibble = self.sum.nibble
        assert nibble is not None
        byte = self.stage.view.body.arguments[nibble.operand]
        whole = Term(at)

        def half(number: int) -> Callable[[int, int], ir.Value]:
            return lambda row, column: _bits(self.value(byte, whole, row, column), number)

        return [Term({**at, loop: as_index(number)}, {nibble.value: half(number)}) for number in range(HALVES)]

    def words(self, at: dict[int, ir.Value], bytes_: int, loop: int) -> list[Term]:
        """The terms of the eight nibbles of the words that begin at a byte of loop `bytes_`."""
        nibble, entry = self.sum.nibble, self.sum.entry
        assert nibble is not None and entry is not None
        table, known = self._table(), dict[tuple[int, int], ir.Value]()
        self.prefetch(at, WORD_BYTES)

        def word(row: int, column: int) -> ir.Value:
            place = self._position(nibble.operand, row, column)
            if place not in known:
                known[place] = self._load_words(nibble.operand, at, *place)
            return known[place]

        terms = []
        for number in range(WORD_BYTES * HALVES):
            byte = arith.AddIOp(at[bytes_], as_index(number // HALVES)).result
            inside = {**at, bytes_: byte, loop: as_index(number % HALVES)}
            terms.append(Term(inside, {entry: self._looked_up(table, word, number)}))
        return terms

    def _looked_up(
        self, table: ir.Value, word: Callable[[int, int], ir.Value], number: int
    ) -> Callable[[int, int], ir.Value]:
        """What the nibbles of a number in words become."""
        known: dict[ir.Value, ir.Value] = {}

        def core(row: int, column: int) -> ir.Value:
            words = word(row, column)
            if words not in known:
                known[words] = _permuted(table, _shifted(words, number * BITS))
            return known[words]

        return core

    def _table(self) -> ir.Value:
        """What all numbers of four bits become."""
        nibble, entry = self.sum.nibble, self.sum.entry
        assert nibble is not None and entry is not None
        kind = ir.VectorType.get([LANES], nibble.value.type)
        numbers = ir.DenseElementsAttr.get(np.arange(LANES, dtype=np.int8), type=kind)
        value = arith.ConstantOp(kind, numbers).result
        return self.value(entry, Term({}, {nibble.value: lambda row, column: value}), 0, 0)

    def _load_words(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """A vector of words of four bytes that lie side by side."""
        kind = ir.VectorType.get([WORD_BYTES * LANES], ir.IntegerType.get_signless(8))
        buffer, indices = self._buffer(operand), self._indices(operand, at, row, column)
        if not self._is_masked(column):
            loaded = vector.LoadOp(kind, buffer, indices).result
        else:
            elements = arith.MulIOp(self.position.mask, as_index(WORD_BYTES)).result
            lanes = ir.VectorType.get([WORD_BYTES * LANES], ir.IntegerType.get_signless(1))
            mask = vector.CreateMaskOp(lanes, [elements]).result
            loaded = vector.MaskedLoadOp(kind, buffer, indices, mask, zeros(kind)).result
        return vector.BitCastOp(ir.VectorType.get([LANES], ir.IntegerType.get_signless(32)), loaded).result


class FillsPanel(DequantizedTile):
    """A tile that has no sums: it puts what it would multiply data with into a panel."""

    @property
    def reads_panel(self) -> bool:
        """See `DequantizedTile`."""
        return False

    def starts(self) -> list[ir.Value]:
        """See `DequantizedTile`."""
        return []

    def add_terms(self, terms: Sequence[Term], sums: Sequence[ir.Value]) -> list[ir.Value]:
        """Stores what the terms are multiplied with."""
        panel, self.panel = self.panel, None
        for first in range(0, len(terms), self.terms_of_word):
            own = terms[first : first + self.terms_of_word]
            for column in range(self.position.vectors):
                vector.StoreOp(self.word(own, 0, column), panel, self.place_in_panel(own[0], column))
        self.panel = panel
        return []

    def scaled(self, at: dict[int, ir.Value], totals: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        """See `DequantizedTile`."""
        return []


def _bits(byte: ir.Value, half: int) -> ir.Value:
    """The lower or the upper half of bytes."""
    if half:
        return arith.ShRUIOp(byte, _splat(byte.type, BITS)).result
    return arith.AndIOp(byte, _splat(byte.type, MASK)).result


def _shifted(words: ir.Value, bits: int) -> ir.Value:
    return arith.ShRUIOp(words, _splat(words.type, bits)).result if bits else words


def _splat(kind: ir.VectorType, number: int) -> ir.Value:
    attribute = ir.IntegerAttr.get(kind.element_type, number)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, attribute)).result


def _permuted(table: ir.Value, indices: ir.Value) -> ir.Value:
    """The elements of a table at the lowest four bits of each index."""
    return call_intrinsic(_PERMUTE[type(table.type.element_type)], table.type, table, indices)
