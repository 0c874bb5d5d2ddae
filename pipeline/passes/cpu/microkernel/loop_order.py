"""The order of the loops around tiles, by the bytes that have to come from beyond the second-level cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from pipeline.ir.element_types import is_scalar
from pipeline.ir.linalg_op import LinalgOp, slides
from pipeline.mlir import ir
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes

#: The loops of a nest: along the rows of tiles, along their vectors, and the others.
Loops = Literal["rows", "vectors", "outer"]
Order = tuple[Loops, Loops, Loops]

#: Rows inside of vectors.
PLAIN: Order = ("outer", "vectors", "rows")
_ROWS_OUTERMOST: Order = ("rows", "outer", "vectors")
_ROWS_INSIDE: Order = ("outer", "rows", "vectors")
_VECTORS_OUTERMOST: Order = ("vectors", "outer", "rows")

#: How many bytes of weights may be read again and again: a part of the second-level cache.
_IN_CACHE = 1 << 18

#: What lies in a second-level cache, about; and what lies in none.
_CACHE, _FAR = 1 << 20, 1 << 23


@dataclass(frozen=True)
class _Input:
    """What an op reads: how many bytes, and which loops it moves along."""

    size: int
    loops: frozenset[Loops]

    def part(self, trips: dict[Loops, int], around: Sequence[Loops]) -> float:
        """The bytes of it that are read inside of an iteration of some loops."""
        return self.size / prod(trips[loop] for loop in around if loop in self.loops)


def loop_order(view: LinalgOp, tile: TileSizes) -> Order:
    """Which loops stand outside of which.

    What is fixed along vectors, as weights with channels first, is read once if it is larger than what moves along
    them; what moves, as weights with channels last, is if it is larger, and not near. Where both are large another
    order may have far less to read; and where the result is, and little is read, it is written as it lies. So are large
    images read by windows with weights of their own.
    """
    if tile.row_dim is None or None in view.sizes:
        return PLAIN
    if not all(is_scalar(one) or ir.ShapedType(one.type).has_static_shape for one in view.operands):
        return PLAIN
    inputs = list(_inputs(view, tile))
    if slides(view) and _are_far(inputs):
        return _ROWS_INSIDE
    streaming = _streaming(view, tile, inputs)
    if streaming is not None:
        return streaming
    if not tile.outer:
        return PLAIN
    fixed = sum(one.size for one in inputs if "vectors" not in one.loops)
    moving = sum(one.size for one in inputs if "vectors" in one.loops)
    usual = _ROWS_OUTERMOST if fixed > moving else _VECTORS_OUTERMOST if moving > _IN_CACHE else PLAIN
    if fixed + moving <= _CACHE:
        return usual
    trips = _trips(view, tile)
    best = min((PLAIN, _ROWS_OUTERMOST, _VECTORS_OUTERMOST), key=lambda order: _traffic(inputs, trips, order))
    return best if 2 * _traffic(inputs, trips, best) < _traffic(inputs, trips, usual) else usual


def _are_far(inputs: list[_Input]) -> bool:
    """Whether what moves along vectors is other data for other rows, more than a cache holds."""
    images = [one for one in inputs if "vectors" in one.loops]
    return all("rows" in one.loops for one in images) and sum(one.size for one in images) > _FAR


def _streaming(view: LinalgOp, tile: TileSizes, inputs: list[_Input]) -> Order | None:
    """The order in which a result is written from one end to the other; None if something else matters more.

    It does where a result is large and what is read for all of its rows stays near: a product with a short sum.
    """
    again = [one for one in inputs if "rows" not in one.loops]
    if len(inputs) != 2 or len(again) != 1 or "vectors" not in again[0].loops:
        return None
    places = view.loops_read(view.outputs[0])
    assert tile.row_dim is not None
    row = places.index(tile.row_dim)
    outer = [dim for dim in tile.outer if view.sizes[dim] != 1]
    before = [dim for dim in outer if places.index(dim) < row]
    if before and len(before) < len(outer):
        return None
    near = again[0].part(_trips(view, tile), ["outer"] if before else [])
    written = sum(_bytes(view.operands[output]) for output in view.outputs)
    if written <= _CACHE or near > _CACHE // 2:
        return None
    return _ROWS_INSIDE if before else _ROWS_OUTERMOST


def _inputs(view: LinalgOp, tile: TileSizes) -> Iterator[_Input]:
    dims: dict[Loops, Sequence[int | None]]
    dims = {"rows": [tile.row_dim], "vectors": [tile.vector_dim], "outer": tile.outer}
    for operand in range(view.inputs):
        if is_scalar(view.operands[operand]):
            continue
        loops = frozenset(
            name
            for name, own in dims.items()
            if any(dim is not None and view.sizes[dim] != 1 and view.moves(operand, dim) != "fixed" for dim in own)
        )
        yield _Input(_bytes(view.operands[operand]), loops)


def _bytes(operand: ir.Value) -> int:
    kind = ir.ShapedType(operand.type)
    return prod(kind.shape) * max(8, kind.element_type.width) // 8


def _trips(view: LinalgOp, tile: TileSizes) -> dict[Loops, int]:
    """How many tiles there are along each of the loops."""
    assert tile.row_dim is not None
    sizes = [size or 0 for size in view.sizes]
    return {
        "rows": max(1, -(-sizes[tile.row_dim] // tile.rows)),
        "vectors": max(1, -(-sizes[tile.vector_dim] // (tile.vectors * tile.lanes))),
        "outer": max(1, prod(sizes[dim] for dim in tile.outer)),
    }


def _traffic(inputs: list[_Input], trips: dict[Loops, int], order: Order) -> float:
    """The bytes that are read from beyond the cache.

    All of an input comes again for each iteration of a loop in which it does not move, unless all that an iteration
    reads stays in the cache.
    """
    total = 0.0
    for one in inputs:
        times = 1
        for depth, loop in enumerate(order):
            inside = sum(other.part(trips, order[: depth + 1]) for other in inputs)
            if loop not in one.loops and inside > _CACHE:
                times *= trips[loop]
        total += one.size * times
    return total
