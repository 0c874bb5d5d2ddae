"""narrow-unpacked-weights: numbers of few bits that are taken out of wide integers become bytes in one op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import GROWTH, ConstExprs, weight_arguments
from pipeline.analysis.element_range import has_four_bits, range_of
from pipeline.analysis.product_body import is_quantized
from pipeline.ir.element_types import byte_size, element_type
from pipeline.ir.rewriting import behind, build_generic, empty_like, is_unused, iterator_types
from pipeline.mlir import arith, ir
from pipeline.passes.layout.dequantization import (
    QUANTIZED_GROWTH,
    Compute,
    Dequantized,
    Read,
    Source,
    has_as_many_elements,
    read_known,
)
from pipeline.passmanager.base import Pass

_CASTS = ("arith.extsi", "arith.extui", "arith.trunci")

#: What has no effect but its results.
_PURE = ("linalg.", "tensor.", "arith.")


@dataclass(frozen=True)
class NarrowUnpackedWeights(Pass):
    """Compute small integers that come from weights of wider ones as bytes, in one op.

    (w >> shifts) & 15 of i32   ->   ext(generic(w, shifts) { trunc((w >> shifts) & 15) } : i8)

    Weights of four bits may be packed eight to an i32, and each step of their unpacking is eight times as large as they
    are: too large for @prepare to keep, which is what passes that look for quantized weights go by. The bytes are not.
    What is known to be in the range of a byte is narrowed behind its last elementwise op; numbers of four bits first.
    """

    name: ClassVar[str] = "narrow-unpacked-weights"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Narrows what comes from weights of wide integers; that may let more be read off as coming from weights."""
        if not any(map(_is_wide, weight_arguments(op))):
            return
        for block in op.regions[0].blocks:
            while self._round(op, block, has_four_bits) or self._round(op, block, _is_byte):
                pass

    def _round(self, function: ir.Operation, block: ir.Block, fits: Callable[[ir.Value], bool]) -> bool:
        """Narrows all integers of some range once; whether there were any."""
        weights = ConstExprs(function, QUANTIZED_GROWTH)
        found = False
        for view in reversed(list(block.operations)):
            op = view.operation
            if not op.name.startswith(_PURE) or not len(op.results):
                continue
            if all(map(is_unused, op.results)):
                op.erase()
                continue
            value = op.results[0]
            read = self._read(value, weights) if op.name.startswith("linalg.") and _is_large(value, weights) else None
            if read is None or not fits(value):
                continue
            known = [source.value for source in read.sources if has_as_many_elements(source.value, value)]
            if any(map(_holds_bytes, known)) and (fits is _is_byte or _is_cast(read)):
                continue
            self.passed(op, f"computes {'numbers of four bits' if fits is has_four_bits else 'bytes'} out of weights")
            _narrow(value, read, weights)
            found = True
        return found

    @staticmethod
    def _read(value: ir.Value, weights: ConstExprs) -> Dequantized | None:
        """How elements are computed from weights; None if there are too many of them, or of something else."""
        read = read_known(value, weights, ir.AffineMap.get_identity(ir.RankedTensorType(value.type).rank))
        if read is None or not all(source.value in weights for source in read.sources):
            return None
        sizes = sum(byte_size(argument.type) or 0 for argument in _arguments(read, weights))
        elements = ir.RankedTensorType(value.type)
        return read if elements.has_static_shape and _count(elements) <= GROWTH * sizes else None


def _arguments(read: Dequantized, weights: ConstExprs) -> frozenset[ir.Value]:
    """The weights that elements come from."""
    return frozenset().union(*(weights.sources[source.value] for source in read.sources))


def _count(kind: ir.RankedTensorType) -> int:
    count = 1
    for size in kind.shape:
        count *= size
    return count


def _is_wide(argument: ir.Value) -> bool:
    """Whether a weight is a matrix of integers of more bits than a byte."""
    kind = argument.type
    element = kind.element_type if isinstance(kind, ir.RankedTensorType) and kind.rank > 1 else None
    return isinstance(element, ir.IntegerType) and element.width > 8


def _is_large(value: ir.Value, weights: ConstExprs) -> bool:
    """Whether a tensor of integers is known from weights, and is wider than it has to be or comes from what is."""
    if not isinstance(value.type, ir.RankedTensorType):
        return False
    element = element_type(value)
    wide = isinstance(element, ir.IntegerType) and element.width > 1
    return wide and weights.knows(value) and not (is_quantized(element) and value in weights)


def _holds_bytes(value: ir.Value) -> bool:
    return is_quantized(element_type(value))


def _is_byte(value: ir.Value) -> bool:
    known = range_of(value)
    return known.lies_in(-128, 127) or known.lies_in(0, 255)


def _is_cast(read: Dequantized) -> bool:
    """Whether elements are those of a source in another type."""
    element = read.element
    while isinstance(element, Compute) and element.op.name in _CASTS:
        (element,) = element.operands
    return isinstance(element, Read)


def _narrow(value: ir.Value, read: Dequantized, weights: ConstExprs) -> None:
    """Puts bytes, extended to the type of a tensor, in its place."""
    kind, byte = ir.RankedTensorType(value.type), ir.IntegerType.get_signless(8)
    signed = range_of(value).lies_in(-128, 127)
    identity, loops = ir.AffineMap.get_identity(kind.rank), iterator_types([False] * kind.rank)

    def computed(elements: Sequence[ir.Value]) -> list[ir.Value]:
        number = read.build(elements)
        return [number if number.type == byte else arith.TruncIOp(byte, number).result]

    def extended(elements: Sequence[ir.Value]) -> list[ir.Value]:
        return [(arith.ExtSIOp if signed else arith.ExtUIOp)(kind.element_type, elements[0]).result]

    with behind(value):
        maps = [_map(source, kind.rank) for source in read.sources]
        inputs = [source.value for source in read.sources]
        empty = empty_like(value, byte)
        made = build_generic(inputs, [empty], [*maps, identity], loops, computed)
        result = made.results[0]
        if kind.element_type != byte:
            wide = build_generic(
                [result], [empty_like(value, kind.element_type)], [identity, identity], loops, extended
            )
            result = wide.results[0]
    weights.add(empty.owner)
    weights.add(made)
    value.replace_all_uses_with(result)


def _map(source: Source, rank: int) -> ir.AffineMap:
    return ir.AffineMap.get(rank, 0, list(source.places))
