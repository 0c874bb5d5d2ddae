"""Dims of data that the window of a contraction slides along."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.ir.indexing_maps import coefficient, loop_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir


@dataclass(frozen=True)
class WindowDim:
    """A dim of the data that a window slides along: index = stride * out + step * tap - low.

    Attributes:
        dim: the number of the dim.
        out: the loop over positions.
        stride: how far it moves.
        weight_dim: the dim of the weight that the loop over taps runs along.
        taps: how many there are.
        step: the distance between two of them.
        low: how many zeros stand in front of the data.
    """

    dim: int
    out: int
    stride: int
    weight_dim: int
    taps: int
    step: int
    low: int = 0


def window_dim(view: LinalgOp, data: int, weight: int, dim: int) -> WindowDim | None:
    """Dim `dim` of operand `data`, whose taps `weight` has; None unless it is `stride * out + step * tap`."""
    results, weights = ([loop_of(index) for index in view.maps[operand].results] for operand in (2, weight))
    moved = {loop: coefficient(view.maps[data].results[dim], loop) for loop in range(view.loops)}
    outs = [loop for loop, by in moved.items() if by != 0 and loop in results]
    taps = [loop for loop, by in moved.items() if by != 0 and loop not in results]
    if len(outs) != 1 or len(taps) != 1 or taps[0] not in weights:
        return None
    stride, step = moved[outs[0]], moved[taps[0]]
    weight_dim = weights.index(taps[0])
    size = ir.RankedTensorType(view.operands[weight].type).shape[weight_dim]
    if not stride or not step or stride < 0 or step < 0 or size < 0:
        return None
    return WindowDim(dim, outs[0], stride, weight_dim, size, step)
