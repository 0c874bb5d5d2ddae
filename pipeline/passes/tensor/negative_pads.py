"""A tensor.pad by numbers that may be negative: what they take away is taken away first.

Upstream copies all of the source into the result, and so beyond it where that is smaller.
"""

from __future__ import annotations

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import size_of
from pipeline.mlir import arith, ir, tensor
from pipeline.passes.tensor.trap_conditions import Signs

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def take_away_first(pad: ir.Operation) -> list[ir.Value]:
    """pad(x, low, high) -> pad(slice(x), max(low, 0), max(high, 0)), where an amount may be negative.

    Returns what is left of x in each such dim; the slice is empty where that is negative.
    """
    signs, ends = Signs(), _ends(pad)
    if not any(signs.may_be_negative(amount) for amount in pad.operands[1:]):
        return []
    source = pad.operands[0]
    rank = ir.RankedTensorType(source.type).rank
    zero = as_index(0)
    starts, sizes, left = [zero] * rank, [size_of(source, dim) for dim in range(rank)], []
    for dim, numbers in enumerate(ends):
        for end, number in enumerate(numbers):
            if number is None or not signs.may_be_negative(pad.operands[number]):
                continue
            amount = pad.operands[number]
            taken = arith.SubIOp(zero, arith.MinSIOp(amount, zero).result).result
            sizes[dim] = arith.SubIOp(sizes[dim], taken).result
            if end == 0:
                starts[dim] = taken
            pad.operands[number] = arith.MaxSIOp(amount, zero).result
        if sizes[dim].owner.name == "arith.subi":
            left.append(sizes[dim])
            sizes[dim] = arith.MaxSIOp(sizes[dim], zero).result
    pad.operands[0] = _slice(source, starts, sizes)
    return left


def _ends(pad: ir.Operation) -> list[tuple[int | None, int | None]]:
    """For each dim the numbers of the operands that say how much is added before and behind; None for constants."""
    lows, highs = (list(ir.DenseI64ArrayAttr(pad.attributes[name])) for name in ("static_low", "static_high"))
    numbers = iter(range(1, len(pad.operands)))
    before, behind = (
        [next(numbers) if amount == _DYNAMIC else None for amount in amounts] for amounts in (lows, highs)
    )
    return list(zip(before, behind, strict=True))


def _slice(source: ir.Value, starts: list[ir.Value], sizes: list[ir.Value]) -> ir.Value:
    rank = len(sizes)
    dynamic = [_DYNAMIC] * rank
    kind = ir.RankedTensorType.get(dynamic, ir.RankedTensorType(source.type).element_type)
    return tensor.ExtractSliceOp(kind, source, starts, sizes, [], dynamic, dynamic, [1] * rank).result
