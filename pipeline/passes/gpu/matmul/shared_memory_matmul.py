"""Writes what a thread does for a contraction whose blocks share tiles of the operands; what map-to-threads emits.

A block of threads computes a tile of the result. It walks along the reduction in steps; for each step all threads
together load a tile of each operand to shared memory, and then each computes its rows and columns from there. Products
of matrices and convolutions have the same form: the loops fall into those of the rows (in one operand), the columns (in
the other), the batch (in both) and the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import loops_in
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import copy_body
from pipeline.mlir import arith, defining_op, gpu, ir, memref, scf
from pipeline.passes.gpu.thread.launch_patterns import is_arithmetic
from pipeline.passes.gpu.thread.thread_results import Results, load, unravel

#: The tile of a block, how far it goes along the sum at a time, and the rows and columns of a thread.
TILE, STEP, EACH = 64, 16, 4
THREADS = (TILE // EACH) ** 2

_MOST_BLOCKS = 65535

#: With fewer rows or columns threads have nothing to share.
_FEWEST = 9
#: More elements a row, so that threads that store a column wait less for each other; rows begin at 16 bytes.
_ROW = TILE + 4


@dataclass(frozen=True)
class Side:
    """An operand, the loops of the result that it alone runs along, and the size of their box."""

    operand: int
    dims: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Split:
    """The loops of a contraction by what they are for; `columns` holds the innermost dim of the result."""

    rows: Side
    columns: Side
    batch: tuple[int, ...]
    sums: tuple[int, ...]
    sizes: tuple[int, ...]

    def size_of(self, dims: Sequence[int]) -> int:
        """The number of points of the box of some loops."""
        return prod(self.sizes[dim] for dim in dims)

    @property
    def blocks(self) -> int:
        """How many tiles the result has."""
        return self.size_of(self.batch) * _tiles(self.rows.size) * _tiles(self.columns.size)


def _tiles(size: int) -> int:
    return -(-size // TILE)


def split_contraction(view: LinalgOp) -> Split | None:
    """The loops of a linalg.generic with two inputs; None if it is no contraction, or too small to share anything."""
    if not is_arithmetic(view.op) or not all(isinstance(operand.type, ir.MemRefType) for operand in view.operands):
        return None
    split = classify(view)
    return split if split is not None and _is_large(split) else None


def classify(view: LinalgOp) -> Split | None:
    """The loops by the operands that they move: one of both inputs, both of them, or no result.

    A loop of one iteration may move the result alone; it counts to the batch.
    """
    sizes = tuple(size for size in view.sizes if size is not None)
    if view.inputs != 2 or len(view.maps) != 3 or len(sizes) < view.loops:
        return None
    left, right, result = (loops_in(indexing) for indexing in view.maps)
    sums = tuple(dim for dim, reduces in enumerate(view.reductions) if reduces)
    parallel = [dim for dim, reduces in enumerate(view.reductions) if not reduces]
    single = {dim for dim in parallel if sizes[dim] == 1} - left - right
    if not sums or not set(parallel) <= result & (left | right | single):
        return None
    sides = []
    for operand, (own, other) in enumerate(((left, right), (right, left))):
        dims = tuple(dim for dim in parallel if dim in own - other)
        sides.append(Side(operand, dims, prod(sizes[dim] for dim in dims)))
    innermost = loops_in(view.maps[2], last=True)
    rows, columns = sides if innermost & set(sides[1].dims) else sides[::-1]
    return Split(rows, columns, tuple(dim for dim in parallel if dim in left & right | single), sums, sizes)


def _is_large(split: Split) -> bool:
    """Whether threads of a block have something to share, and there are not too many blocks."""
    shares = min(split.rows.size, split.columns.size) >= _FEWEST and split.size_of(split.sums) >= STEP
    return shares and split.blocks <= _MOST_BLOCKS


class SharedMemoryEmitter:
    """Writes the kernel at the insertion point: the op that `results` is of, and what is done with its results.

    The result begins with the number `start`, or with what is in its memory where that is None.
    """

    def __init__(self, results: Results, split: Split, start: ir.Value | None):
        self.results = results
        self.view = results.anchor
        self.split = split
        self.start = start
        self.thread = gpu.ThreadIdOp(gpu.Dimension.x).result
        across = TILE // EACH
        self.column = arith.RemUIOp(self.thread, as_index(across)).result
        self.row = arith.DivUIOp(self.thread, as_index(across)).result
        self._place_block()

    def _place_block(self) -> None:
        """Which tile of the result the block computes, and the indices of the batch."""
        rows, columns = _tiles(self.split.rows.size), _tiles(self.split.columns.size)
        block = gpu.BlockIdOp(gpu.Dimension.x).result
        batch, row, column = unravel(block, [self.split.size_of(self.split.batch), rows, columns])
        self.first = {
            self.split.rows.operand: arith.MulIOp(row, as_index(TILE)).result,
            self.split.columns.operand: arith.MulIOp(column, as_index(TILE)).result,
        }
        sizes = [self.split.sizes[dim] for dim in self.split.batch]
        self.batch = dict(zip(self.split.batch, unravel(batch, sizes), strict=True))

    def emit(self) -> None:
        """Everything."""
        tiles = [self._allocate(operand) for operand in range(2)]
        points = [(self._in_result(row, column)) for row in range(EACH) for column in range(EACH)]
        values = [self.start if self.start is not None else self._element(2, at) for at, _ in points]
        total = self.split.size_of(self.split.sums)
        walk = scf.ForOp(as_index(0), as_index(total), as_index(STEP), values)
        with ir.InsertionPoint(walk.body):
            self._fill_tiles(tiles, walk.induction_variable, total)
            gpu.BarrierOp()
            results = self._sum(tiles, walk.induction_variable, total, list(walk.inner_iter_args))
            gpu.BarrierOp()
            scf.YieldOp(results)
        for (at, inside), value in zip(points, walk.results, strict=True):
            branch = scf.IfOp(inside)
            with ir.InsertionPoint(branch.then_block):
                self.results.write(at, [value])
                scf.YieldOp([])

    def _allocate(self, operand: int) -> ir.Value:
        element = ir.MemRefType(self.view.operands[operand].type).element_type
        shared = ir.Attribute.parse("#gpu.address_space<workgroup>")
        kind = ir.MemRefType.get([STEP * _ROW], element, memory_space=shared)
        return memref.AllocOp(kind, [], [], alignment=16).result

    def _in_result(self, row: int, column: int) -> tuple[dict[int, ir.Value], ir.Value]:
        """The loop indices of one of the thread's elements, clamped into the result, and whether it lies inside."""
        at, inside = dict(self.batch), []
        for side, own, number in ((self.split.rows, self.row, row), (self.split.columns, self.column, column)):
            place = arith.AddIOp(self.first[side.operand], _neighbour(own, number)).result
            inside.append(arith.CmpIOp(arith.CmpIPredicate.ult, place, as_index(side.size)).result)
            at |= self._unravel_side(side, place)
        return at, arith.AndIOp(*inside).result

    def _unravel_side(self, side: Side, place: ir.Value) -> dict[int, ir.Value]:
        clamped = _at_most(place, side.size - 1, side.size % TILE == 0)
        return dict(zip(side.dims, unravel(clamped, [self.split.sizes[dim] for dim in side.dims]), strict=True))

    def _fill_tiles(self, tiles: list[ir.Value], first: ir.Value, total: int) -> None:
        """Loads the tiles from step `first` of the sum on; what lies outside is a copy of what lies at the border."""
        for side in (self.split.rows, self.split.columns):
            moving = loops_in(self.view.maps[side.operand], last=True)
            along_sum = not any(dim in moving for dim in side.dims)
            for number in range(STEP * TILE // THREADS):
                element_number = arith.AddIOp(self.thread, as_index(number * THREADS)).result
                outer, inner = unravel(element_number, [TILE, STEP] if along_sum else [STEP, TILE])
                place, step = (outer, inner) if along_sum else (inner, outer)
                at = dict(self.batch) | self._unravel_side(side, arith.AddIOp(self.first[side.operand], place).result)
                at |= self._in_sum(arith.AddIOp(first, step).result, total)
                target = arith.AddIOp(arith.MulIOp(step, as_index(_ROW)).result, place).result
                memref.StoreOp(self._element(side.operand, at), tiles[side.operand], [target])

    def _in_sum(self, place: ir.Value, total: int) -> dict[int, ir.Value]:
        clamped = _at_most(place, total - 1, total % STEP == 0)
        sizes = [self.split.sizes[dim] for dim in self.split.sums]
        return dict(zip(self.split.sums, unravel(clamped, sizes), strict=True))

    def _sum(self, tiles: list[ir.Value], first: ir.Value, total: int, values: list[ir.Value]) -> list[ir.Value]:
        last = as_index(STEP)
        if total % STEP:
            last = arith.MinUIOp(last, arith.SubIOp(as_index(total), first).result).result
        loop = scf.ForOp(as_index(0), last, as_index(1), values)
        with ir.InsertionPoint(loop.body):
            line = arith.MulIOp(loop.induction_variable, as_index(_ROW)).result
            rows = self._from_tile(tiles[self.split.rows.operand], line, self.row)
            columns = self._from_tile(tiles[self.split.columns.operand], line, self.column)
            carried = iter(loop.inner_iter_args)
            swapped = self.split.rows.operand == 1
            scf.YieldOp(
                [self._body(c if swapped else r, r if swapped else c, next(carried)) for r in rows for c in columns]
            )
        return list(loop.results)

    def _from_tile(self, tile: ir.Value, line: ir.Value, own: ir.Value) -> list[ir.Value]:
        places = [arith.AddIOp(line, _neighbour(own, number)).result for number in range(EACH)]
        return [memref.LoadOp(tile, [place]).result for place in places]  # one access of 16 bytes

    def _body(self, left: ir.Value, right: ir.Value, value: ir.Value) -> ir.Value:
        (result,) = copy_body(self.view, [left, right, value])
        contract_sums([result])
        return result

    def _element(self, operand: int, at: dict[int, ir.Value]) -> ir.Value:
        return load(self.view.operands[operand], self.view.maps[operand], at)


def _neighbour(own: ir.Value, number: int) -> ir.Value:
    """A thread's rows, and its columns, are side by side."""
    return arith.AddIOp(arith.MulIOp(own, as_index(EACH)).result, as_index(number)).result


def _at_most(place: ir.Value, last: int, always: bool) -> ir.Value:
    return place if always else arith.MinUIOp(place, as_index(last)).result


def contract_sums(values: Sequence[ir.Value]) -> None:
    """Lets sums `a + x * y` round once: the own sums of a product, never a model's arithmetic."""
    for value in values:
        total = defining_op(value)
        if total is None or total.name != "arith.addf":
            continue
        factors = [op for op in map(defining_op, total.operands) if op is not None and op.name == "arith.mulf"]
        for op in (total, *factors):
            op.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<contract>")
