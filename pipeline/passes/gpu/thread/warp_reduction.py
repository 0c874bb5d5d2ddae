"""Writes what a thread does for a reduction along rows, a block for each; what map-to-threads emits.

The threads of a block walk along the row together, each with a partial result in a register. The partial results are
then combined: within warps by shuffles, where the device has them, and between warps through shared memory; or in a
tree through shared memory alone. The order is always the same, and so is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from pipeline.analysis.reduction_combiners import FOLDS, fold_ops
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, gpu, ir, memref, scf

#: The threads of a warp can hand numbers to each other.
WARP = 32
_MOST_THREADS = 256
_MOST_BLOCKS = 65535

#: Rows shorter than this are one thread's.
_SHORTEST = 64


@dataclass(frozen=True)
class ReducedRows:
    """How a reduction is done by rows.

    Attributes:
        count: how many rows.
        length: how many elements each has.
        threads: how many threads a block has.
        folds: for each result, the op that combines partial results.
    """

    count: int
    length: int
    threads: int
    folds: tuple[str, ...]


def choose_rows(view: LinalgOp) -> ReducedRows | None:
    """None where a reduction is no fold, has not the rows' elements side by side, or has too short rows."""
    if any(size is None for size in view.sizes) or not any(view.reductions):
        return None
    folds = fold_ops(view.op)
    if folds is None or not _runs_along_rows(view):
        return None
    sizes = [size for size in view.sizes if size is not None]
    length = prod(size for size, reduced in zip(sizes, view.reductions, strict=True) if reduced)
    count = prod(size for size, reduced in zip(sizes, view.reductions, strict=True) if not reduced)
    if length < _SHORTEST or not 0 < count <= _MOST_BLOCKS:
        return None
    threads = WARP
    while threads < _MOST_THREADS and threads * 2 <= length:
        threads *= 2
    return ReducedRows(count, length, threads, folds)


def _runs_along_rows(view: LinalgOp) -> bool:
    """Whether the innermost reduction moves every input that it moves along that one's last dimension."""
    innermost = max(dim for dim, reduced in enumerate(view.reductions) if reduced)
    moved = [m for m in view.maps[: view.inputs] if any(coefficient(e, innermost) != 0 for e in m.results)]
    return bool(moved) and all(coefficient(indexing.results[-1], innermost) == 1 for indexing in moved)


class WarpEmitter:
    """Writes the kernel at the insertion point.

    `body` computes the next partial results from the indices of the row, those in it, and the partial results.
    """

    def __init__(self, rows: ReducedRows, kinds: Sequence[ir.Type], shuffles: bool):
        self.rows = rows
        self.kinds = kinds
        self.shuffles = shuffles and all(str(kind) in ("f32", "i32") for kind in kinds)
        self.thread = gpu.ThreadIdOp(gpu.Dimension.x).result
        self.row = gpu.BlockIdOp(gpu.Dimension.x).result

    def emit(
        self,
        body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
        finish: Callable[[list[ir.Value]], None],
    ) -> None:
        """`body` gets a position in the row; `finish` the results, in the first thread."""
        loop = scf.ForOp(self.thread, as_index(self.rows.length), as_index(self.rows.threads), self.identities())
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(body(loop.induction_variable, list(loop.inner_iter_args)))
        total = self.total(list(loop.results))
        branch = scf.IfOp(self._is(self.thread, 0))
        with ir.InsertionPoint(branch.then_block):
            finish(total)
            scf.YieldOp([])

    def identities(self) -> list[ir.Value]:
        """What each result begins with: combined with x it gives x."""
        return [identity(fold, kind) for fold, kind in zip(self.rows.folds, self.kinds, strict=True)]

    def total(self, partial: list[ir.Value]) -> list[ir.Value]:
        """The results in every thread, from the partial ones of each."""
        return self._by_shuffles(partial) if self.shuffles else self._in_a_tree(partial)

    def _by_shuffles(self, values: list[ir.Value]) -> list[ir.Value]:
        word = ir.IntegerType.get_signless(32)
        distance = WARP // 2
        while distance:
            offset, width = (arith.ConstantOp(word, number).result for number in (distance, WARP))
            others = [gpu.ShuffleOp(value, offset, width, gpu.ShuffleMode.XOR).shuffleResult for value in values]
            values = self._combine(values, others)
            distance //= 2
        warps = self.rows.threads // WARP
        if warps == 1:
            return values
        shared = [_shared(kind, warps) for kind in self.kinds]
        warp = arith.DivUIOp(self.thread, as_index(WARP)).result
        leads = scf.IfOp(self._is(arith.RemUIOp(self.thread, as_index(WARP)).result, 0))
        with ir.InsertionPoint(leads.then_block):
            for buffer, value in zip(shared, values, strict=True):
                memref.StoreOp(value, buffer, [warp])
            scf.YieldOp([])
        gpu.BarrierOp()
        total = [memref.LoadOp(buffer, [as_index(0)]).result for buffer in shared]
        for number in range(1, warps):
            total = self._combine(total, [memref.LoadOp(buffer, [as_index(number)]).result for buffer in shared])
        return total

    def _in_a_tree(self, values: list[ir.Value]) -> list[ir.Value]:
        shared = [_shared(kind, self.rows.threads) for kind in self.kinds]
        for buffer, value in zip(shared, values, strict=True):
            memref.StoreOp(value, buffer, [self.thread])
        gpu.BarrierOp()
        half = self.rows.threads // 2
        while half:
            inside = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, self.thread, as_index(half)).result)
            with ir.InsertionPoint(inside.then_block):
                other = arith.AddIOp(self.thread, as_index(half)).result
                pairs = [[memref.LoadOp(buffer, [at]).result for buffer in shared] for at in (self.thread, other)]
                for buffer, value in zip(shared, self._combine(*pairs), strict=True):
                    memref.StoreOp(value, buffer, [self.thread])
                scf.YieldOp([])
            gpu.BarrierOp()
            half //= 2
        return [memref.LoadOp(buffer, [as_index(0)]).result for buffer in shared]

    def _combine(self, left: list[ir.Value], right: list[ir.Value]) -> list[ir.Value]:
        return [combine(fold, a, b) for fold, a, b in zip(self.rows.folds, left, right, strict=True)]

    def _is(self, value: ir.Value, number: int) -> ir.Value:
        return arith.CmpIOp(arith.CmpIPredicate.eq, value, as_index(number)).result


def folds_of(generic: ir.Operation) -> tuple[str, ...]:
    """For each result the op that combines partial ones, of an op that is known to be a fold."""
    folds = fold_ops(generic)
    assert folds is not None
    return folds


def length_of(view: LinalgOp) -> int:
    """How many elements are folded into each result."""
    return prod(size or 0 for size, reduced in zip(view.sizes, view.reductions, strict=True) if reduced)


def combine(fold: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """The op `fold` of two values."""
    return ir.Operation.create(fold, results=[left.type], operands=[left, right]).result


def identity(fold: str, kind: ir.Type) -> ir.Value:
    """What combined with x gives x."""
    number = FOLDS[fold][1]
    if isinstance(kind, ir.IntegerType):
        least = -(1 << (kind.width - 1)) if kind.width > 1 else 1
        value = {"least": least, "greatest": -1 - least if kind.width > 1 else 0}.get(str(number), number)
        value = int(value) & ((1 << kind.width) - 1) if kind.width == 1 else int(value)
        return arith.ConstantOp(kind, ir.IntegerAttr.get(kind, value)).result
    return arith.ConstantOp(kind, ir.FloatAttr.get(kind, float(number))).result


def _shared(kind: ir.Type, size: int) -> ir.Value:
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    return memref.AllocOp(ir.MemRefType.get([size], kind, memory_space=space), [], []).result
