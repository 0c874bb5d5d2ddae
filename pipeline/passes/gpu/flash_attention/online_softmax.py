"""A softmax over numbers that come tile by tile: Milakov and Gimelshein's, as in FlashAttention.

A thread keeps the greatest number of each of its rows so far, and what it has summed up relative to that, and scales
the sums when a greater one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.mlir import arith, gpu, ir, math
from pipeline.passes.gpu.flash_attention.elements import number


@dataclass(frozen=True)
class OnlineSoftmax:
    """What a thread keeps of each of its rows: the greatest score, its part of the sum, its part of the result."""

    highest: list[ir.Value]
    total: list[ir.Value]
    results: list[ir.Value]

    @property
    def flat(self) -> list[ir.Value]:
        """All of it, as a loop hands it on."""
        return [*self.highest, *self.total, *self.results]

    def like(self, flat: Sequence[ir.Value]) -> OnlineSoftmax:
        """The inverse of `flat`."""
        rows = len(self.highest)
        return OnlineSoftmax(list(flat[:rows]), list(flat[rows : 2 * rows]), list(flat[2 * rows :]))


@dataclass(frozen=True)
class Renewed:
    """What a thread has when it has taken in a tile.

    Attributes:
        rows: what it keeps, the results not yet scaled.
        weights: the exponentials of the tile, a list for each row.
        scales: what the sums of each row have to be multiplied by.
    """

    rows: OnlineSoftmax
    weights: list[list[ir.Value]]
    scales: list[ir.Value]

    def scale(self, row: int, value: ir.Value) -> ir.Value:
        """A sum relative to the row's greatest number before the tile, relative to the one behind it."""
        return arith.MulFOp(value, self.scales[row]).result


def renew(rows: OnlineSoftmax, scores: Sequence[Sequence[ir.Value]], lanes: int, approximate: bool = False) -> Renewed:
    """Takes in a tile's scores, a list for each of the thread's rows, which `lanes` neighbouring threads share.

    Approximate exponentials are the device's own, three instructions each: a millionth off, where the weights that they
    become have 11 bits at most.
    """
    highest, totals, weights, scales = [], [], [], []
    for row, own in enumerate(scores):
        new = across(_reduce(arith.MaximumFOp, own), lanes, arith.MaximumFOp)
        new = arith.MaximumFOp(rows.highest[row], new).result
        is_none = arith.CmpFOp(arith.CmpFPredicate.OEQ, new, number(float("-inf"))).result
        base = arith.SelectOp(is_none, number(0.0), new).result  # -inf - -inf would be NaN
        scales.append(_exp_of_difference(rows.highest[row], base, approximate))
        weights.append([_exp_of_difference(score, base, approximate) for score in own])
        scaled = arith.MulFOp(rows.total[row], scales[-1]).result
        totals.append(arith.AddFOp(scaled, _reduce(arith.AddFOp, weights[-1])).result)
        highest.append(new)
    return Renewed(OnlineSoftmax(highest, totals, rows.results), weights, scales)


def across(value: ir.Value, lanes: int, op: Callable[..., ir.OpView]) -> ir.Value:
    """The combination of a number of each of `lanes` neighbouring threads."""
    word = ir.IntegerType.get_signless(32)
    distance = 1
    while distance < lanes:
        offset, width = (arith.ConstantOp(word, constant).result for constant in (distance, 32))
        other = gpu.ShuffleOp(value, offset, width, gpu.ShuffleMode.XOR).shuffleResult
        value = op(value, other).result
        distance *= 2
    return value


def _reduce(op: Callable[..., ir.OpView], values: Sequence[ir.Value]) -> ir.Value:
    total = values[0]
    for value in values[1:]:
        total = op(total, value).result
    return total


def _exp_of_difference(value: ir.Value, base: ir.Value, approximate: bool) -> ir.Value:
    licence = ir.Attribute.parse(f"#arith.fastmath<{'afn' if approximate else 'none'}>")
    return math.ExpOp(arith.SubFOp(value, base).result, fastmath=licence).result
