"""Writes what a thread does for an elementwise op that transposes an operand; what map-to-threads emits.

Neighbouring threads write neighbouring elements of the result; along another dim of an operand that would be an access
to memory of its own for each. So a block brings a square of the operand to shared memory as it lies there, and takes
its elements from there across.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from pipeline.ir.constants import as_index, zero
from pipeline.ir.indexing_maps import coefficient, is_permutation
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import copy_body
from pipeline.mlir import arith, gpu, ir, memref, scf
from pipeline.passes.gpu.thread.launch_patterns import is_arithmetic
from pipeline.passes.gpu.thread.thread_results import Results, load, plus, unravel
from pipeline.passes.gpu.thread.vector_access import BYTES

THREADS = 256

#: The sides of a tile, by preference, for elements of at least so many bytes: rows of a tile fill sectors of memory.
_SIDES = ((4, 32), (1, 64))
_MOST_BLOCKS = 65535

#: Sides of the box that are shorter leave too much of a tile empty.
_SHORTEST = 16


@dataclass(frozen=True)
class TransposedTile:
    """How an op is done by tiles.

    Attributes:
        across: the loop along the last dim of the result.
        along: the loop along the last dim of the operands that are transposed.
        outer: the other loops.
        operands: those that are transposed.
        side: the length of a tile's sides.
        sizes: of the loops.
    """

    across: int
    along: int
    outer: tuple[int, ...]
    operands: tuple[int, ...]
    side: int
    sizes: tuple[int, ...]

    @property
    def counts(self) -> list[int]:
        """How often each outer loop runs, then how many tiles there are along and across."""
        return [
            *(self.sizes[dim] for dim in self.outer),
            *(-(-self.sizes[dim] // self.side) for dim in (self.along, self.across)),
        ]

    @property
    def blocks(self) -> int:
        """How many tiles there are."""
        return prod(self.counts)


def choose_tile(view: LinalgOp, narrowest: int, most_shared: int) -> TransposedTile | None:
    """None where no operand has another loop along its last dim than the result, or its sizes are not known.

    Elements take `narrowest` bytes at least, and a block may share `most_shared`.
    """
    if any(view.reductions) or not is_arithmetic(view.op) or any(size is None for size in view.sizes):
        return None
    sizes = tuple(size for size in view.sizes if size is not None)
    lasts = {_last(view.maps[output], sizes) for output in view.outputs}
    across = lasts.pop() if len(lasts) == 1 else None
    if across is None or not all(is_permutation(view.maps[output]) for output in view.outputs):
        return None
    if any(list(view.body.arguments[output].uses) for output in view.outputs):
        return None
    found = {number: _transposes(view, number, across, sizes) for number in range(view.inputs)}
    operands = tuple(number for number, along in found.items() if along is not None)
    alongs = {along for along in found.values() if along is not None}
    along = alongs.pop() if len(alongs) == 1 else None
    if along is None or min(sizes[across], sizes[along]) < _SHORTEST:
        return None
    kinds = [str(ir.MemRefType(view.operands[number].type).element_type) for number in operands]
    if any(kind not in BYTES for kind in kinds):
        return None
    widths = [max(narrowest, BYTES[kind]) for kind in kinds]
    outer = tuple(dim for dim in range(view.loops) if dim not in (across, along))
    for least, side in _SIDES:
        tile = TransposedTile(across, along, outer, operands, side, sizes)
        shared = sum(side * (side + 1) * width for width in widths)
        fits = shared <= most_shared and 0 < tile.blocks <= _MOST_BLOCKS
        if fits and min(widths) >= least:
            return tile
    return None


def _last(indexing: ir.AffineMap, sizes: tuple[int, ...]) -> int | None:
    """The loop along the last dim that has more than one element, if nothing else moves along it."""
    for expression in reversed(list(indexing.results)):
        if not isinstance(expression, ir.AffineDimExpr):
            return None
        loop = ir.AffineDimExpr(expression).position
        if sizes[loop] != 1:
            return int(loop)
    return None


def _transposes(view: LinalgOp, number: int, across: int, sizes: tuple[int, ...]) -> int | None:
    """The loop along the last dim of an operand that `across` moves along another one; None where it is not such."""
    operand = view.operands[number]
    if not isinstance(operand.type, ir.MemRefType) or not list(view.body.arguments[number].uses):
        return None
    along = _last(view.maps[number], sizes)
    if along is None or along == across:
        return None
    return along if any(coefficient(expression, across) != 0 for expression in view.maps[number].results) else None


class TransposedTilesEmitter:
    """Writes the kernel at the insertion point: the op that `results` is of, and what is done with its results."""

    def __init__(self, results: Results, tile: TransposedTile):
        self.results, self.view, self.tile = results, results.anchor, tile
        thread, block = gpu.ThreadIdOp(gpu.Dimension.x).result, gpu.BlockIdOp(gpu.Dimension.x).result
        *outer, along, across = unravel(block, tile.counts)
        self.outer = dict(zip(tile.outer, outer, strict=True))
        self.along, self.across = (arith.MulIOp(place, as_index(tile.side)).result for place in (along, across))
        self.lane = arith.RemUIOp(thread, as_index(tile.side)).result
        self.line = arith.DivUIOp(thread, as_index(tile.side)).result

    def emit(self) -> None:
        """Everything."""
        shared = {number: self._fetch(number) for number in self.tile.operands}
        gpu.BarrierOp()
        for start in range(0, self.tile.side, THREADS // self.tile.side):
            line = plus(self.line, as_index(start))
            at = self.outer | {self.tile.along: plus(self.along, line), self.tile.across: plus(self.across, self.lane)}
            with self._inside(at):
                inputs = [
                    memref.LoadOp(shared[number], [self.lane, line]).result
                    if number in shared
                    else load(self.view.operands[number], self.view.maps[number], at)
                    for number in range(self.view.inputs)
                ]
                unread = [
                    zero(ir.MemRefType(self.view.operands[number].type).element_type) for number in self.view.outputs
                ]
                self.results.write(at, copy_body(self.view, inputs + unread))

    def _fetch(self, number: int) -> ir.Value:
        """A tile of an operand in shared memory: [place across, place along], its rows one element longer."""
        operand, indexing, side = self.view.operands[number], self.view.maps[number], self.tile.side
        space = ir.Attribute.parse("#gpu.address_space<workgroup>")
        element = ir.MemRefType(operand.type).element_type
        kind = ir.MemRefType.get([side, side + 1], element, memory_space=space)
        shared = memref.AllocOp(kind, [], [], alignment=16).result
        for start in range(0, side, THREADS // side):
            line = plus(self.line, as_index(start))
            at = self.outer | {self.tile.along: plus(self.along, self.lane), self.tile.across: plus(self.across, line)}
            with self._inside(at):
                memref.StoreOp(load(operand, indexing, at), shared, [line, self.lane])
        return shared

    @contextlib.contextmanager
    def _inside(self, at: dict[int, ir.Value]) -> Iterator[None]:
        """What is written in its block runs for elements that are there."""
        tests = [
            arith.CmpIOp(arith.CmpIPredicate.ult, at[dim], as_index(self.tile.sizes[dim])).result
            for dim in (self.tile.along, self.tile.across)
            if self.tile.sizes[dim] % self.tile.side
        ]
        if not tests:
            yield
            return
        branch = scf.IfOp(functools.reduce(lambda left, right: arith.AndIOp(left, right).result, tests))
        with ir.InsertionPoint(branch.then_block):
            yield
            scf.YieldOp([])
