"""Data with zeros between its elements, as torch-mlir makes it for transposed convolutions and pads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pipeline.ir.matchers import is_zero
from pipeline.ir.reshapes import reassociation
from pipeline.mlir import defining_op, ir


@dataclass(frozen=True)
class Spread:
    """Data with zeros between and around its elements: expand_shape(insert_slice(source, zeros)).

    Attributes:
        source: the tensor whose elements they are.
        groups: for each dim of the source the dims of the data that it becomes.
        offsets, strides: where the elements are, for each dim of the source.
        sizes: the dims of what the source was spread to.
    """

    source: ir.Value
    groups: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]
    strides: tuple[int, ...]
    sizes: tuple[int, ...]


def spread_of(data: ir.Value) -> Spread | None:
    """How data is spread; None if it is not, or not in steps that are known."""
    op = defining_op(data)
    rank = ir.RankedTensorType(data.type).rank
    groups = [[dim] for dim in range(rank)]
    if op is not None and op.name == "tensor.expand_shape":
        groups, op = reassociation(op), defining_op(op.operands[0])
    if op is None or not puts_among_zeros(op):
        return None
    offsets, strides = _numbers(op, "static_offsets"), _numbers(op, "static_strides")
    if max(strides) == 1:
        return None
    return Spread(
        source=op.operands[0],
        groups=tuple(map(tuple, groups)),
        offsets=tuple(offsets),
        strides=tuple(strides),
        sizes=tuple(ir.RankedTensorType(op.results[0].type).shape),
    )


def puts_among_zeros(op: ir.Operation) -> bool:
    """Whether an op is insert_slice(x, zeros), of all dims, to places that are known."""
    if op.name != "tensor.insert_slice" or not _has_all_dims(op) or not is_zero(op.operands[1]):
        return False
    return not _unknown(_numbers(op, "static_offsets") + _numbers(op, "static_strides"))


def zero_padding(op: ir.Operation) -> list[tuple[int, int]] | None:
    """How many zeros an op puts in front of and behind each dim of its first operand, and none between elements.

    That of a tensor.pad, or of insert_slice(x, zeros); None for another op, other values or unknown numbers.
    """
    if op.name == "tensor.insert_slice":
        return _around(op) if puts_among_zeros(op) else None
    if op.name != "tensor.pad" or len(op.operands) != 1:
        return None
    yielded = op.regions[0].blocks[0].operations[0].operation
    if yielded.name != "tensor.yield" or not is_zero(yielded.operands[0]):
        return None
    low, high = _numbers(op, "static_low"), _numbers(op, "static_high")
    return list(zip(low, high, strict=True)) if min(low + high) >= 0 else None


def _around(insert: ir.Operation) -> list[tuple[int, int]] | None:
    """The zeros around what is inserted in one piece; None if it is not, or sizes are unknown."""
    source, whole = (ir.RankedTensorType(insert.operands[number].type) for number in (0, 1))
    if not (source.has_static_shape and whole.has_static_shape) or max(_numbers(insert, "static_strides")) > 1:
        return None
    places = zip(_numbers(insert, "static_offsets"), source.shape, whole.shape, strict=True)
    return [(first, size - first - count) for first, count, size in places]


def zeros_between(data: ir.Value) -> int:
    """How many elements a tensor has for each that is not a zero put between them; 1 if none are."""
    spread = spread_of(data)
    return prod(spread.strides) if spread is not None else 1


def _numbers(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def _unknown(numbers: list[int]) -> bool:
    return ir.ShapedType.get_dynamic_size() in numbers


def _has_all_dims(op: ir.Operation) -> bool:
    """Whether a slice has as many dims as what it is of."""
    ranks = [ir.RankedTensorType(value.type).rank for value in (op.operands[0], op.results[0])]
    return ranks[0] == ranks[1]
