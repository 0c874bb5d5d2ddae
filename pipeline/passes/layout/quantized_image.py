"""The data of a convolution as bytes: quantized images behind pads and reshapes, and the same pads of bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.ir.constants import zero
from pipeline.ir.matchers import is_zero
from pipeline.ir.reshapes import RESHAPES
from pipeline.mlir import arith, constant_integer, defining_op, ir, tensor, terminator
from pipeline.passes.layout.dequantization import Compute, Expression, read_quantized_data
from pipeline.passes.layout.quantized_factor import QuantizedFactor, read_factor

_CONVERSIONS = ("arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp", "arith.trunci")


@dataclass(frozen=True)
class QuantizedImage:
    """Data of a convolution: bytes that are dequantized, then padded with zeros and reshaped.

    Attributes:
        factor: how an element is dequantized: by one scale and one zero point for all of them.
        moves: the pads and reshapes, in program order.
    """

    factor: QuantizedFactor
    moves: tuple[ir.Operation, ...] = ()

    @property
    def is_padded(self) -> bool:
        """Whether there are elements that were no bytes before."""
        return any(op.name == "tensor.pad" for op in self.moves)

    @property
    def border(self) -> int | None:
        """The byte that stands for zero; None if there is none, or if it is not known."""
        points = [_whole_number(point) for point in self.factor.zeros]
        low, high = (0, 255) if self.factor.unsigned else (-128, 127)
        number = self.factor.shift + sum(point or 0 for point in points)
        return number if None not in points and low <= number <= high else None

    def with_other_sign(self) -> QuantizedImage:
        """See `QuantizedFactor.with_other_sign`."""
        return replace(self, factor=self.factor.with_other_sign())

    def build(self, channels: int, missing: int) -> ir.Value:
        """The bytes, padded and reshaped, with so many more channels along a dim; they are computed behind each other.

        What is added is the byte that stands for zero.
        """
        value, moves = self.factor.quantized.value, list(self.moves)
        if missing:
            rank = ir.RankedTensorType(value.type).rank
            more = [missing if dim == channels else 0 for dim in range(rank)]
            value = padded(value, [0] * rank, more, self._border_of(value))
        for op in moves:
            value = self._moved(op, value)
        return value

    def _moved(self, op: ir.Operation, value: ir.Value) -> ir.Value:
        """A pad or reshape of bytes, like one of floats."""
        kind = ir.RankedTensorType(value.type)
        if op.name == "tensor.pad":
            low, high = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{side}"])) for side in ("low", "high"))
            return padded(value, low, high, self._border_of(value))
        attributes = {name: op.attributes[name] for name in op.attributes}
        shape = ir.RankedTensorType(op.results[0].type).shape
        result = ir.RankedTensorType.get(shape, kind.element_type)
        return ir.Operation.create(op.name, [result], [value, *list(op.operands)[1:]], attributes).result

    def _border_of(self, value: ir.Value) -> ir.Value:
        border = self.border
        kind = ir.RankedTensorType(value.type).element_type
        if not border:
            return zero(kind)
        return arith.ConstantOp(kind, border - 256 if border > 127 else border).result


def read_image(value: ir.Value) -> QuantizedImage | None:
    """Data of a convolution as bytes; None if it is computed in another way."""
    moves: list[ir.Operation] = []
    while True:
        rank = ir.RankedTensorType(value.type).rank
        dequantized = read_quantized_data(value, ir.AffineMap.get_identity(rank))
        factor = read_factor(dequantized) if dequantized is not None else None
        if factor is not None and _has_rank(factor, rank):
            return QuantizedImage(factor, tuple(moves)) if _is_the_same_everywhere(factor) else None
        op = defining_op(value)
        if op is None or not (_pads_with_zeros(op) or op.name in RESHAPES):
            return None
        moves.insert(0, op)
        value = op.operands[0]


def _has_rank(factor: QuantizedFactor, rank: int) -> bool:
    """Whether bytes lie as what is dequantized from them does."""
    identity = list(ir.AffineMap.get_identity(rank).results)
    kind = ir.RankedTensorType(factor.quantized.value.type)
    return kind.rank == rank and all(
        place == own or size == 1
        for place, own, size in zip(factor.quantized.places, identity, kind.shape, strict=True)
    )


def _is_the_same_everywhere(factor: QuantizedFactor) -> bool:
    """Whether all elements have one scale and one zero point."""
    return all(isinstance(place, ir.AffineConstantExpr) for source in factor.sources[1:] for place in source.places)


def _pads_with_zeros(op: ir.Operation) -> bool:
    """Whether an op pads with zeros, as many as is known."""
    if op.name != "tensor.pad" or len(op.operands) != 1:
        return False
    return is_zero(terminator(op.regions[0].blocks[0]).operands[0])


def padded(value: ir.Value, low: list[int], high: list[int], number: ir.Value) -> ir.Value:
    """A tensor with a border of a number."""
    kind = ir.RankedTensorType(value.type)
    unknown = ir.ShapedType.get_dynamic_size()
    sizes = [
        unknown if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) + low[dim] + high[dim]
        for dim in range(kind.rank)
    ]
    attributes = {
        "static_low": ir.DenseI64ArrayAttr.get(low),
        "static_high": ir.DenseI64ArrayAttr.get(high),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0]),
    }
    result = ir.RankedTensorType.get(sizes, kind.element_type)
    pad = ir.Operation.create("tensor.pad", [result], [value], attributes, regions=1)
    block = ir.Block.create_at_start(pad.regions[0], [ir.IndexType.get()] * kind.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(number)
    return pad.result


def _whole_number(point: Expression) -> int | None:
    """The number that a zero point is; None if it is not known."""
    if not isinstance(point, Compute):
        return None
    if point.op.name in _CONVERSIONS:
        return _whole_number(point.operands[0])
    if point.op.name != "arith.constant":
        return None
    value = point.op.attributes["value"]
    return int(value.value) if isinstance(value, ir.FloatAttr) else constant_integer(point.op.results[0])
