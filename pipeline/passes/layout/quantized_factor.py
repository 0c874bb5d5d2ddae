"""A factor of a product as (an integer - a zero point) * a scale, read off how it is dequantized."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.ir.linalg_op import structured
from pipeline.ir.rewriting import build_generic, empty_like, iterator_types, producer_through_reshapes
from pipeline.mlir import arith, constant_integer, defining_op, ir
from pipeline.passes.layout.dequantization import Compute, Dequantized, Expression, Read, Source, joined
from pipeline.passes.layout.exact_integers import without_casts

#: Ops whose results are whole floats.
_WHOLE = ("arith.sitofp", "arith.uitofp", "math.roundeven", "math.round", "math.floor", "math.ceil", "math.trunc")

#: Differences of bytes fit into integers of so many bits, whatever type zero points have.
_EXACT_BITS = 32

_UNSIGNED, _SIGNED = ("arith.extui", "arith.uitofp"), ("arith.extsi", "arith.sitofp")


@dataclass(frozen=True)
class QuantizedFactor:
    """The product of `scales` and of what `zeros` leave of a quantized element.

    Attributes:
        sources: what is read, the quantized tensor first.
        unsigned: whether its elements have no sign.
        zeros: what is taken away: integers, or floats that are whole.
        scales: what that is multiplied by.
        shift: what is taken away, too: a number.
    """

    sources: tuple[Source, ...]
    unsigned: bool
    zeros: tuple[Expression, ...] = ()
    scales: tuple[Expression, ...] = ()
    shift: int = 0

    @property
    def quantized(self) -> Source:
        """The tensor of bytes."""
        return self.sources[0]

    @property
    def is_centered(self) -> bool:
        """Whether nothing is taken away."""
        return not self.zeros and not self.shift

    def joined(self, loops: int) -> QuantizedFactor:
        """The same with the dims of the bytes joined that a loop goes through."""
        return replace(self, sources=(joined(self.quantized, loops), *self.sources[1:]))

    def with_other_sign(self) -> QuantizedFactor:
        """The same of bytes that have a sign if these have none, and none if they have: 128 less or more.

        The new bytes are computed at the insertion point.
        """
        value, places = self.quantized.value, self.quantized.places
        indexing = ir.AffineMap.get_identity(len(places))
        element = ir.RankedTensorType(value.type).element_type

        def flip(elements: Sequence[ir.Value]) -> list[ir.Value]:
            sign = arith.ConstantOp(element, -1 << (element.width - 1)).result
            return [arith.XOrIOp(elements[0], sign).result]

        loops = iterator_types([False] * len(places))
        made = build_generic([value], [empty_like(value, element)], [indexing, indexing], loops, flip).results[0]
        half = 1 << (element.width - 1)
        return replace(
            self,
            sources=(Source(made, places), *self.sources[1:]),
            unsigned=not self.unsigned,
            shift=self.shift + (-half if self.unsigned else half),
        )


def read_factor(dequantized: Dequantized) -> QuantizedFactor | None:
    """(ext(q) - zero) * scale of an element, with conversions anywhere in between; None for another form."""
    scales: list[Expression] = []
    zeros: list[Expression] = []
    sign: bool | None = None
    element = without_casts(dequantized.element, dequantized.sources)
    while isinstance(element, Compute):
        name, operands = element.op.name, element.operands
        quantized = [_reads(operand) for operand in operands]
        if name in (*_UNSIGNED, *_SIGNED) and len(operands) == 1:
            sign = name in _UNSIGNED
            element = operands[0]
        elif quantized == [True, False] and _takes_away(element) and _is_whole(operands[1], dequantized):
            zeros += [] if _is_zero(operands[1]) else [operands[1]]
            element = operands[0]
        elif name == "arith.mulf" and quantized.count(True) == 1 and not zeros and sign is None:
            scales.append(operands[quantized.index(False)])
            element = operands[quantized.index(True)]
        else:
            return None
    return QuantizedFactor(dequantized.sources, sign, tuple(zeros), tuple(scales)) if sign is not None else None


def _reads(expression: Expression) -> bool:
    """Whether an expression depends on the quantized element."""
    if isinstance(expression, Read):
        return expression.source == 0
    return any(map(_reads, expression.operands))


def _takes_away(difference: Compute) -> bool:
    """Whether an op is a subtraction that is exact for bytes: one of bytes themselves wraps."""
    kind = difference.op.results[0].type
    if difference.op.name == "arith.subi":
        return ir.IntegerType(kind).width >= _EXACT_BITS
    return difference.op.name == "arith.subf"


def _is_whole(expression: Expression, dequantized: Dequantized) -> bool:
    """Whether a zero point is known to be an integer, in whatever type."""
    if isinstance(expression, Read):
        return _has_whole_elements(dequantized.sources[expression.source].value)
    if isinstance(expression.op.results[0].type, ir.IntegerType) or expression.op.name in _WHOLE:
        return True
    value = expression.op.attributes["value"] if expression.op.name == "arith.constant" else None
    return isinstance(value, ir.FloatAttr) and value.value.is_integer()


def _has_whole_elements(value: ir.Value) -> bool:
    """Whether a tensor has integers, in whatever type."""
    if isinstance(ir.RankedTensorType(value.type).element_type, ir.IntegerType):
        return True
    producer, _ = producer_through_reshapes(value)
    view = structured(producer)
    last = defining_op(view.yielded[0]) if view is not None and len(view.yielded) == 1 else None
    return last is not None and last.name in _WHOLE


def _is_zero(expression: Expression) -> bool:
    if isinstance(expression, Read) or expression.op.name != "arith.constant":
        return False
    value = expression.op.attributes["value"]
    return constant_integer(expression.op.results[0]) == 0 or isinstance(value, ir.FloatAttr) and value.value == 0.0
