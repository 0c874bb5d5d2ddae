"""How a block of threads does the ops of one iteration of a group: what each op is, and who has which element.

A block does the ops of its iteration one after the other. Elements are numbered along the loops of an op; thread t
takes `lanes` neighbours at a time, from `t * lanes` on, in steps of `threads * lanes`. As long as ops number the
elements of what they hand on in the same way, each thread reads what it has written itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp, bounded
from pipeline.mlir import ir
from pipeline.passes.gpu.thread.thread_results import is_private
from pipeline.passes.gpu.thread.vector_access import BYTES, is_aligned

Kind = Literal["number", "fold", "elements", "points"]

_WARP = 32

#: How many elements of a row a thread may keep in registers.
_MOST_IN_REGISTERS = 16
_ENOUGH_IN_REGISTERS = 8


@dataclass(frozen=True)
class BlockOp:
    """A linalg.generic on one iteration's part of the buffers.

    Attributes:
        view: the op and its loops, all of known size.
        kind: `number`, every thread computes the one result; `fold`, the threads fold one result together;
            `elements`, elementwise; `points`, each thread computes whole results.
        dims: the loops along which elements are numbered, outermost first; loops of one iteration are left out.
    """

    view: LinalgOp
    kind: Kind
    dims: tuple[int, ...]

    @property
    def sizes(self) -> list[int]:
        """The sizes of the numbered loops."""
        return [self.view.sizes[dim] or 0 for dim in self.dims]

    @property
    def count(self) -> int:
        """How many elements are numbered."""
        return prod(self.sizes)

    def is_numbered(self, operand: int) -> bool:
        """Whether the elements of an operand are numbered as the iterations are."""
        if not isinstance(self.view.operands[operand].type, ir.MemRefType):
            return False
        kind = ir.MemRefType(self.view.operands[operand].type)
        expressions = [
            expression
            for expression, size in zip(self.view.maps[operand].results, kind.shape, strict=True)
            if size != 1
        ]
        walked = [ir.AffineDimExpr(e).position if isinstance(e, ir.AffineDimExpr) else None for e in expressions]
        return walked == list(self.dims) and prod(kind.shape) == self.count

    def is_one(self, operand: int) -> bool:
        """Whether all iterations use the same element of an operand."""
        expressions = self.view.maps[operand].results
        moving = [dim for dim, size in enumerate(self.view.sizes) if size != 1]
        return all(coefficient(expression, dim) == 0 for expression in expressions for dim in moving)

    @property
    def buffers(self) -> list[int]:
        """The operands that are buffers."""
        operands = enumerate(self.view.operands)
        return [number for number, operand in operands if isinstance(operand.type, ir.MemRefType)]

    def reads_output(self, output: int) -> bool:
        """Whether the body starts from what is in an output."""
        return bool(list(self.view.body.arguments[output].uses))


def describe(op: ir.Operation) -> BlockOp | None:
    """A linalg.generic as a block does it; None if the size of a loop is not known."""
    view = bounded(op)
    if view is None or any(size is None for size in view.sizes):
        return None
    large = [dim for dim, size in enumerate(view.sizes) if size != 1]
    parallel = [dim for dim in view.loops_read(view.inputs) if dim in large and not view.reductions[dim]]
    parallel = [dim for dim in large if not view.reductions[dim] and dim not in parallel] + parallel
    reductions = [dim for dim in large if view.reductions[dim]]
    if not parallel and not reductions:
        return BlockOp(view, "number", ())
    if not parallel:
        folds = fold_ops(op)
        return BlockOp(view, "number" if folds is None else "fold", tuple(reductions))
    return BlockOp(view, "points" if reductions else "elements", tuple(parallel))


@dataclass(frozen=True)
class Shape:
    """How elements are dealt out.

    Attributes:
        threads: how many threads a block has.
        lanes: how many neighbours a thread takes at a time, of ops with `count` elements; of others, one.
        count: see `lanes`.
    """

    threads: int
    lanes: int
    count: int

    def lanes_of(self, op: BlockOp) -> int:
        """How many neighbours a thread takes at a time."""
        return self.lanes if op.kind in ("fold", "elements") and op.count == self.count else 1

    def rounds(self, op: BlockOp) -> int | None:
        """How often each thread takes elements, if that is equally often and they can be kept in registers."""
        each = self.threads * self.lanes_of(op)
        if op.kind not in ("fold", "elements") or op.count % each or op.count // self.threads > _MOST_IN_REGISTERS:
            return None
        return op.count // each


def choose_shape(ops: Sequence[BlockOp], most_threads: int, access_bytes: int) -> Shape:
    """Blocks large enough for the longest op, and accesses as wide as all ops of that length allow."""
    longest = max((op.count for op in ops), default=1)
    rows = [op for op in ops if op.kind in ("fold", "elements")]
    count = max((op.count for op in rows), default=1)
    lanes = _lanes([op for op in rows if op.count == count], access_bytes) if count == longest else 1
    threads = _WARP
    while threads * 2 <= most_threads and longest // (threads * lanes) * lanes > _ENOUGH_IN_REGISTERS:
        threads *= 2
    if any(op.kind == "points" for op in ops):
        while threads * 2 <= min(most_threads, 256) and threads < longest:
            threads *= 2
    return Shape(threads, lanes, count)


def _lanes(ops: Sequence[BlockOp], access_bytes: int) -> int:
    """How many elements fill an access, if all buffers outside of the block that are numbered can be accessed so."""
    buffers = [(op, number) for op in ops for number in op.buffers if op.is_numbered(number)]
    elements = {str(ir.MemRefType(op.view.operands[number].type).element_type) for op, number in buffers}
    if not access_bytes or not elements <= BYTES.keys():
        return 1
    lanes = access_bytes // max((BYTES[element] for element in elements), default=access_bytes)
    outside = [op.view.operands[number] for op, number in buffers if not is_private(op.view.operands[number])]
    fits = all(op.count % lanes == 0 and (op.sizes[-1] % lanes == 0) for op in ops)
    return lanes if fits and all(is_aligned(buffer, lanes) for buffer in outside) else 1
