"""Indices in the body of a gather: which of them are counters of its loops, and how reshapes change them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from pipeline.ir.constants import as_index
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.reshapes import reassociation
from pipeline.mlir import arith, constant_integer, defining_op, ir, linalg

#: The values of a new body by those of the old one.
Known = Mapping[ir.Value, ir.Value]


@dataclass(frozen=True)
class Index:
    """An index.

    Attributes:
        build: builds it in a new body.
        loops: the loops whose counters are its digits, the last one changing fastest; none where it is always 0. None
            where it is anything else.
    """

    build: Callable[[Known], ir.Value]
    loops: tuple[int, ...] | None = None


def constant(number: int) -> Index:
    """An index that is always the same."""
    return Index(lambda _: as_index(number), () if number == 0 else None)


def read_index(gather: LinalgOp, value: ir.Value) -> Index:
    """What a value of a gather's body is as an index."""
    loops = _digits(gather, value)
    return Index(lambda known: known.get(value, value), loops)


def in_source(gather: LinalgOp, reshape: ir.Operation, place: Sequence[Index]) -> list[Index]:
    """The indices in what is reshaped of a place in the outcome; both have known sizes."""
    groups = reassociation(reshape)
    if reshape.name == "tensor.expand_shape":
        sizes = ir.RankedTensorType(reshape.results[0].type).shape
        return [_merged(gather, [place[dim] for dim in group], [sizes[dim] for dim in group]) for group in groups]
    sizes = ir.RankedTensorType(reshape.operands[0].type).shape
    return [
        part
        for group, index in zip(groups, place, strict=True)
        for part in _split(gather, index, [sizes[dim] for dim in group])
    ]


def _digits(gather: LinalgOp, value: ir.Value) -> tuple[int, ...] | None:
    """The loops whose counters are the digits of a number: i, or i * n + j where j counts to n."""
    op = defining_op(value)
    if op is None:
        return None
    if constant_integer(value) == 0:
        return ()
    if op.name == "linalg.index":
        return (ir.IntegerAttr(op.attributes["dim"]).value,)
    if op.name != "affine.apply" or len(op.operands) != 2:
        return None
    high, low = (_digits(gather, operand) for operand in op.operands)
    factor = _factor(ir.AffineMapAttr(op.attributes["map"]).value)
    if high is None or low is None or factor is None or factor != _count(gather, low):
        return None
    return (*high, *low)


def _factor(linear: ir.AffineMap) -> int | None:
    """The number n of a map (i, j) -> i * n + j, of dims or symbols."""
    total = linear.results[0]
    if not isinstance(total, ir.AffineAddExpr):
        return None
    high, low = ir.AffineAddExpr(total).lhs, ir.AffineAddExpr(total).rhs
    if not isinstance(high, ir.AffineMulExpr):
        high, low = low, high
    if not isinstance(high, ir.AffineMulExpr) or _operand(low) != 1 or _operand(ir.AffineMulExpr(high).lhs) != 0:
        return None
    factor = ir.AffineMulExpr(high).rhs
    return ir.AffineConstantExpr(factor).value if isinstance(factor, ir.AffineConstantExpr) else None


def _operand(expression: ir.AffineExpr) -> int | None:
    if isinstance(expression, ir.AffineDimExpr):
        return ir.AffineDimExpr(expression).position
    return ir.AffineSymbolExpr(expression).position if isinstance(expression, ir.AffineSymbolExpr) else None


def _count(gather: LinalgOp, loops: Sequence[int]) -> int | None:
    """How many numbers have counters of these loops as digits."""
    sizes = [gather.sizes[loop] for loop in loops]
    return None if None in sizes else prod(size or 0 for size in sizes)


def _split(gather: LinalgOp, index: Index, sizes: Sequence[int]) -> list[Index]:
    """The indices in dims of these sizes, which a reshape has merged; divided where they are no counters."""
    if len(sizes) == 1:
        return [index]
    digits = _split_digits(gather, index.loops, sizes)
    if digits is not None:
        return [_number(gather, loops) for loops in digits]
    found: list[Index] = []
    for size in reversed(sizes[1:]):
        found.insert(0, _then(index, arith.RemUIOp, size))
        index = _then(index, arith.DivUIOp, size)
    return [index, *found]


def _split_digits(gather: LinalgOp, loops: Sequence[int] | None, sizes: Sequence[int]) -> list[tuple[int, ...]] | None:
    """The loops of each dim, where digits of a number and dims go together."""
    if loops is None:
        return None
    left = list(loops)
    found: list[tuple[int, ...]] = []
    for size in reversed(sizes):
        own: list[int] = []
        while left and (_count(gather, own) or 0) < size:
            own.insert(0, left.pop())
        if _count(gather, own) != size:
            return None
        found.insert(0, tuple(own))
    return None if left else found


def _number(gather: LinalgOp, loops: tuple[int, ...]) -> Index:
    """The number whose digits are counters."""

    def build(_: Known) -> ir.Value:
        number: ir.Value | None = None
        for loop in loops:
            counter = linalg.IndexOp(loop).result
            size = gather.sizes[loop]
            assert size is not None
            number = counter if number is None else arith.AddIOp(_times(number, size), counter).result
        return as_index(0) if number is None else number

    return Index(build, loops)


def _merged(gather: LinalgOp, indices: Sequence[Index], sizes: Sequence[int]) -> Index:
    """The index in the dim that an expansion has split into dims of these sizes."""
    first, *others = indices
    for index, size in zip(others, sizes[1:], strict=True):
        first = _joined(gather, first, index, size)
    return first


def _joined(gather: LinalgOp, high: Index, low: Index, size: int) -> Index:
    """high * size + low"""

    def build(known: Known) -> ir.Value:
        return arith.AddIOp(_times(high.build(known), size), low.build(known)).result

    are_digits = high.loops is not None and low.loops is not None and _count(gather, low.loops) == size
    return Index(build, (*(high.loops or ()), *(low.loops or ())) if are_digits else None)


def _then(index: Index, op: Callable[..., ir.OpView], number: int) -> Index:
    return Index(lambda known: op(index.build(known), as_index(number)).result)


def _times(number: ir.Value, factor: int) -> ir.Value:
    return arith.MulIOp(number, as_index(factor)).result
