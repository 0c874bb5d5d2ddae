"""Sums of scaled products of bytes: a group of terms that has one scale is a sum of integers."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.dot_product import DotProduct
from pipeline.analysis.product_body import (
    added_value,
    arguments_behind,
    dequantized_input,
    product_of_integers,
    values_behind,
)
from pipeline.analysis.scaled_sum import depth_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.nibbles import Nibble, nibble_of
from pipeline.mlir import constant_integer, defining_op, ir

#: How many products of bytes an instruction adds to each sum.
STEPS = 4


@dataclass(frozen=True)
class ByteFactor:
    """A factor ext(byte) - centers of a product of integers.

    Attributes:
        operand: the number of the input that has the bytes.
        unsigned: whether they have no sign.
        centers: the values of the body, in 32 bits, that are taken away; they change less often than the byte.
        offset: what has been taken away from a number of four bits, 0 to 15, to get the byte; None for a whole byte.
    """

    operand: int
    unsigned: bool
    centers: tuple[ir.Value, ...]
    offset: int | None


@dataclass(frozen=True)
class ScaledDot:
    """A body out + float((ext(a) - y) * (ext(b) - z)) * scale.

    sum(float((a - y) * (b - z)) * scale)  =  float(sum(a * b) - y * sum(b) - z * sum(a) + count * y * z) * scale

    Attributes:
        factors: that of input 0 and that of input 1.
        scales: the values of the body that the sum of a group is multiplied by.
        depth: within how many of the loops of the sum scales and centers change, outermost first.
        nibble: the number of four bits that one factor is, if it is.
        weight: the number of the input that has the columns of the result.
    """

    factors: tuple[ByteFactor, ByteFactor]
    scales: tuple[ir.Value, ...]
    depth: int
    nibble: Nibble | None
    weight: int

    @property
    def dot(self) -> DotProduct:
        """The instruction for that."""
        first, second = self.factors
        return DotProduct(STEPS, (first.unsigned, second.unsigned))


def scaled_dot_of(view: LinalgOp) -> ScaledDot | None:
    """How to compute a sum of scaled products of integers by dot products of bytes; None for other bodies."""
    added = added_value(view) if len(view.outputs) == 1 and isinstance(view.yielded[0].type, ir.F32Type) else None
    product = None if added is None or view.inputs < 2 else product_of_integers(added, view)
    if added is None or product is None or ir.IntegerType(product.results[0].type).width != 32 or not view.summed:
        return None
    nibble = nibble_of(view)
    if nibble is not None and (nibble.loop != view.summed[-1] or len(view.summed) < 2):
        return None
    found = {factor.operand: factor for value in product.operands if (factor := _factor(value, view, nibble))}
    if len(found) != 2 or (nibble is not None and found[nibble.operand].offset is None):
        return None
    factors, scales = (found[0], found[1]), _scales(added, product)
    inside = [*scales, *factors[0].centers, *factors[1].centers]
    depth = max((depth_of(value, view) for value in inside), default=0)
    if depth > len(view.summed) - (1 if nibble is None else 2):
        return None
    column = view.loops_read(view.inputs)[-1:]
    weight = next((number for number in (1, 0) if column and view.loops_read(number)[-1:] == column), 1)
    return ScaledDot(factors, scales, depth, nibble, weight)


def _scales(value: ir.Value, product: ir.Operation) -> tuple[ir.Value, ...]:
    """What the float of a product is multiplied by until it is `value`."""
    scales = []
    op = defining_op(value)
    while op is not None and op.name == "arith.mulf":
        inside = [product.results[0] in values_behind(operand) for operand in op.operands]
        scales.append(op.operands[inside.index(False)])
        op = defining_op(op.operands[inside.index(True)])
    return tuple(scales)


def _factor(value: ir.Value, view: LinalgOp, nibble: Nibble | None) -> ByteFactor | None:
    """ext(byte) - centers; None for something else."""
    operand, centers = dequantized_input(value, view), list[ir.Value]()
    op = defining_op(value)
    while operand is not None and op is not None and op.name == "arith.subi":
        inner, center = op.operands
        if view.body.arguments[operand] in arguments_behind(center):
            return None
        centers.append(center)
        op = defining_op(inner)
    if operand is None or op is None or op.name not in ("arith.extsi", "arith.extui"):
        return None
    byte, unsigned = op.operands[0], op.name == "arith.extui"
    if ir.IntegerType(byte.type).width != 8:
        return None
    if byte == view.body.arguments[operand]:
        return ByteFactor(operand, unsigned, tuple(centers), None)
    offset = None if nibble is None else _offset(byte, nibble)
    return None if offset is None or (unsigned and offset) else ByteFactor(operand, unsigned, tuple(centers), offset)


def _offset(byte: ir.Value, nibble: Nibble) -> int | None:
    """What has been taken away from a number of four bits; None if something else has been done with it."""
    if byte == nibble.value:
        return 0
    op = defining_op(byte)
    if op is None or op.name != "arith.subi" or op.operands[0] != nibble.value:
        return None
    return constant_integer(op.operands[1])
