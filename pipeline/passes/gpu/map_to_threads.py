"""map-to-threads: dispatches become what one thread of a GPU does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import ClassVar

from pipeline.analysis.epilogue import epilogues
from pipeline.ir.attributes import BLOCK, DISPATCH, ITEMS, STREAMED, THREADS
from pipeline.ir.constants import as_index
from pipeline.ir.linalg_op import bounded
from pipeline.ir.matchers import is_fill
from pipeline.ir.rewriting import before, is_unused
from pipeline.mlir import arith, clone, constant_integer, gpu, ir, linalg, memref, scf, walk
from pipeline.passes.gpu.block import block_loops
from pipeline.passes.gpu.flash_attention import tensor_core_kernel
from pipeline.passes.gpu.flash_attention.fma_kernel import StreamedFma
from pipeline.passes.gpu.flash_attention.pattern import read_attention
from pipeline.passes.gpu.flash_attention.tensor_core_kernel import StreamedTensorCores
from pipeline.passes.gpu.mark_flash_attention import choose_tile
from pipeline.passes.gpu.matmul import few_rows_matmul, shared_memory_matmul, tensor_core_matmul, warpgroup_matmul
from pipeline.passes.gpu.matmul.shared_memory_matmul import Split, split_contraction
from pipeline.passes.gpu.thread import transposed_tiles, warp_reduction
from pipeline.passes.gpu.thread.elementwise import Thread, size_of
from pipeline.passes.gpu.thread.launch_patterns import block_nest, is_arithmetic, parallel_nest
from pipeline.passes.gpu.thread.thread_results import Results, unravel
from pipeline.passes.gpu.thread.warp_reduction import choose_rows
from pipeline.passmanager.base import Pass

#: The most blocks that a launch may have along one dimension, in WebGPU.
_MOST_BLOCKS = 65535

#: The bytes that an element takes at least, and that a block may share: on CUDA, and on devices without narrow types.
_CUDA, _OTHERS = (1, 40 * 1024), (4, 12 * 1024)


@dataclass(frozen=True)
class MapToThreads(Pass):
    """Turn each function marked `pipeline.dispatch` into what one thread does, in terms of its number in the launch.

    A thread computes one element of the results of a linalg.generic, reductions in loops with their accumulators in
    registers, or one element of a copy. Threads are numbered along the result's innermost dimension, so that
    neighbours write neighbouring elements. Large contractions of known size are done by blocks that share tiles of
    the operands, rows are reduced by a block each, and elementwise ops on whole buffers take several elements at a
    time. A dispatch with no parallel loop is one thread. Left in the function's attributes are `pipeline.threads`,
    the number of threads unless an argument says it, `pipeline.block`, the threads of a block, and `pipeline.items`,
    how many of those the launch needs for one block.
    """

    name: ClassVar[str] = "map-to-threads"
    mandatory: ClassVar[bool] = True

    block: int = field(default=128, metadata={"help": "how many threads a block has"})
    most_threads: int = field(default=256, metadata={"help": "how many threads a block may have"})
    shared_memory: bool = field(default=True, metadata={"help": "threads of a block work together"})
    access_bytes: int = field(default=0, metadata={"help": "a thread's accesses are that wide where elements allow it"})
    shuffles: bool = field(default=False, metadata={"help": "the 32 threads of a warp can hand numbers to each other"})

    tensor_cores: bool = field(default=False, metadata={"help": "sm_80's: mma.sync, ldmatrix, cp.async"})
    warpgroup_mma: bool = field(default=False, metadata={"help": "sm_90a's: wgmma, and what that needs of memory"})
    tf32: bool = field(default=False, metadata={"help": "tensor cores multiply float32, with 10 bits of mantissa"})

    def run(self, op: ir.Operation) -> None:
        """Maps every dispatch of the module."""
        for function in walk(op, "func.func"):
            if DISPATCH in function.attributes:
                self._map(function)

    def _map(self, function: ir.Operation) -> None:
        if STREAMED in function.attributes:
            self._stream(function)
            return
        ops = [op.operation for op in function.regions[0].blocks[0].operations]
        fills = {op.operands[1]: op for op in ops if is_fill(op)}
        roots = [op for op in ops if op.name in ("linalg.generic", "memref.copy") and op not in fills.values()]
        if not roots and not fills:
            self._loops(function, ops)
            return
        root = roots[0] if roots else next(iter(fills.values()))
        with before(ops[-1]):
            if root.name == "memref.copy":
                _copy(_Launch(function, self.block), root)
            else:
                self._generic(_Launch(function, self.block), root, fills if roots else {})
        own = [op for op in ops if op.name in ("memref.alloc", "memref.alloca")]
        for op in reversed(dict.fromkeys([*fills.values(), *roots])):
            op.erase()
        for op in own:
            if is_unused(op.results[0]):
                op.erase()

    def _stream(self, function: ir.Operation) -> None:
        """An attention, whose blocks go over the keys."""
        attention = read_attention(function)
        tile = None if isinstance(attention, str) else choose_tile(attention, self.tensor_cores)
        if isinstance(attention, str) or tile is None:
            self.fail(function, f"mark-flash-attention has marked what is no attention: {attention}")
        on_tensor_cores = self.tensor_cores and tensor_core_kernel.choose_tile(attention) is not None
        ops = [op.operation for op in function.regions[0].blocks[0].operations]
        root = attention.weighted.view
        results = Results(root, tuple(epilogues(root, is_arithmetic)))
        with before(ops[-1]):
            kind = StreamedTensorCores if on_tensor_cores else StreamedFma
            kind(attention, results, tile).emit()
        for op in reversed(ops[:-1]):
            if op.name.startswith("linalg.") or (op.name == "memref.alloc" and is_unused(op.results[0])):
                op.erase()
        blocks = tile.blocks(attention)
        describe(function, blocks * tile.threads, tile.threads, tile.threads)

    def _loops(self, function: ir.Operation, ops: list[ir.Operation]) -> None:
        """One block or one thread for each iteration of the parallel loops; one in all if there are none."""
        of_blocks = next((found for found in map(block_nest, ops) if found), None)
        if of_blocks is not None:
            blocks, threads = block_loops.emit(function, of_blocks, self.most_threads, self.access_bytes, self.shuffles)
            describe(function, blocks, threads, 1)
            return
        for copy in walk(function, "memref.copy"):  # a loop of the thread, as the other linalg ops inside of its loops
            with before(copy):
                linalg.copy(copy.operands[0], outs=[copy.operands[1]])
            copy.erase()
        nest = next((found for found in map(parallel_nest, ops) if found), None)
        if nest is None:
            describe(function, 1, 1, 1)
            return
        sizes = [constant_integer(loop.operands[1]) for loop in nest]
        counts = [loop.operands[1] if size is None else size for loop, size in zip(nest, sizes, strict=True)]

        def body(at: list[ir.Value]) -> None:
            known = {loop.regions[0].blocks[0].arguments[0]: counter for loop, counter in zip(nest, at, strict=True)}
            inner = [op.operation for loop in nest for op in loop.regions[0].blocks[0].operations]
            for op in inner:
                if op in nest or op.name == "scf.yield":
                    continue
                clone(op, known)

        with before(nest[0]):
            _Launch(function, self.block).over(counts, body)
        nest[0].erase()

    def _generic(self, launch: _Launch, generic: ir.Operation, fills: dict[ir.Value, ir.Operation]) -> None:
        """By the first of the strategies that suits the op; the last one suits all."""
        view = bounded(generic)
        if view is None:
            self.fail(generic, "a loop of this op is bounded by no dimension of an operand")
        may_go_on = is_arithmetic(generic) and not is_fill(generic)
        behind = tuple(epilogues(view, is_arithmetic)) if may_go_on else ()
        starts = {buffer: fill.operands[0] for buffer, fill in fills.items()}
        work = _Work(launch, Results(view, behind), starts)
        strategies = [self._with_wide_accesses, _element_by_element]
        if self.shared_memory:
            strategies = [
                self._on_tensor_cores,
                _in_shared_memory,
                self._few_rows,
                self._rows_by_warps,
                self._transposed,
                *strategies,
            ]
        next(strategy for strategy in strategies if strategy(work))

    def _on_tensor_cores(self, work: _Work) -> bool:
        """A contraction whose types and sizes tensor cores take."""
        split = work.split if self.tensor_cores else None
        tile = None if split is None else tensor_core_matmul.choose_tile(split)
        if split is None or tile is None:
            return False
        form = tensor_core_matmul.choose_form(work.results.anchor.op, work.start, self.tf32)
        if form is None:
            return False
        larger = None
        if self.warpgroup_mma and form == tensor_core_matmul.OF_16_BITS:
            larger = warpgroup_matmul.choose_tile(split)
        if larger is not None:
            tile = larger
            warpgroup_matmul.WarpgroupEmitter(work.results, split, larger).emit()
        else:
            tensor_core_matmul.TensorCoreEmitter(work.results, split, tile, form).emit()
        describe(work.launch.function, tile.blocks(split) * tile.threads, tile.threads, tile.threads)
        return True

    def _few_rows(self, work: _Work) -> bool:
        """A few rows times a matrix, whose lines threads read several elements at a time."""
        chosen = few_rows_matmul.choose_strips(work.results.anchor) if self.access_bytes else None
        if chosen is None:
            return False
        split, strips = chosen
        few_rows_matmul.FewRowsEmitter(work.results, split, strips, work.start).emit()
        threads = few_rows_matmul.THREADS
        describe(work.launch.function, split.size_of(split.batch) * strips.count * threads, threads, threads)
        return True

    def _rows_by_warps(self, work: _Work) -> bool:
        """Reductions along rows, a block each."""
        rows = choose_rows(work.results.anchor)
        if rows is None:
            return False
        thread = Thread(work.results, work.starts)
        thread.emit_rows(warp_reduction.WarpEmitter(rows, thread.kinds, self.shuffles))
        describe(work.launch.function, rows.count * rows.threads, rows.threads, rows.threads)
        return True

    def _transposed(self, work: _Work) -> bool:
        """An elementwise op that transposes an operand, by tiles; narrow types take words without wide accesses."""
        tile = transposed_tiles.choose_tile(work.results.anchor, *(_CUDA if self.access_bytes else _OTHERS))
        if tile is None:
            return False
        transposed_tiles.TransposedTilesEmitter(work.results, tile).emit()
        threads = transposed_tiles.THREADS
        describe(work.launch.function, tile.blocks * threads, threads, threads)
        return True

    def _with_wide_accesses(self, work: _Work) -> bool:
        """Elementwise ops on whole buffers, several elements a thread."""
        thread = Thread(work.results, work.starts)
        lanes = thread.lanes(self.access_bytes)
        if lanes <= 1:
            return False
        elements = prod(size for size in work.results.anchor.sizes if size is not None)
        work.launch.over([elements // lanes], thread.emit_wide(lanes))
        return True


@dataclass(frozen=True)
class _Work:
    """An op that threads share: its dispatch, the op with what is done to its results, what its buffers begin with."""

    launch: _Launch
    results: Results
    starts: dict[ir.Value, ir.Value]

    @property
    def start(self) -> ir.Value | None:
        """What the result of a contraction begins with; None for what is in its memory."""
        return self.starts.get(self.results.anchor.operands[2])

    @cached_property
    def split(self) -> Split | None:
        """The loops of a contraction by what they are for; None if it is none that blocks share."""
        return split_contraction(self.results.anchor)


def _in_shared_memory(work: _Work) -> bool:
    """A contraction whose blocks share tiles of the operands."""
    if work.split is None:
        return False
    shared_memory_matmul.SharedMemoryEmitter(work.results, work.split, work.start).emit()
    threads = shared_memory_matmul.THREADS
    describe(work.launch.function, work.split.blocks * threads, threads, threads)
    return True


def _element_by_element(work: _Work) -> bool:
    """Anything: a thread for each element of the results."""
    thread = Thread(work.results, work.starts)
    work.launch.over([thread.size(dim) for dim in thread.parallel], thread.emit)
    return True


@dataclass
class _Launch:
    """The threads of a dispatch."""

    function: ir.Operation
    block: int

    def over(self, sizes: Sequence[ir.Value | int], body: Callable[[list[ir.Value]], None]) -> None:
        """Runs `body` for each point of a box, which it gets as indices, the last one running fastest."""
        static = all(isinstance(size, int) for size in sizes)
        total = prod(size for size in sizes if isinstance(size, int)) if static else None
        block = self.block if total is None else max(1, min(self.block, total))
        describe(self.function, total, block, block)
        if total == 1:
            body([as_index(0)] * len(sizes))
            return
        count = as_index(1)
        for size in sizes:
            count = arith.MulIOp(count, as_index(size)).result
        number = thread_number(block)
        if total is None or total > block * _MOST_BLOCKS:
            stride = arith.MulIOp(gpu.GridDimOp(gpu.Dimension.x).result, as_index(block)).result
            loop = scf.ForOp(number, count, stride)
            with ir.InsertionPoint(loop.body):
                body(unravel(loop.induction_variable, sizes))
                scf.YieldOp([])
        elif total % block == 0:
            body(unravel(number, sizes))
        else:
            branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, number, count).result)
            with ir.InsertionPoint(branch.then_block):
                body(unravel(number, sizes))
                scf.YieldOp([])


def describe(function: ir.Operation, threads: int | None, block: int, items: int) -> None:
    """Leaves in the attributes how a dispatch is launched."""
    numbers = {BLOCK: block, ITEMS: items} | ({} if threads is None else {THREADS: threads})
    for name, number in numbers.items():
        function.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def thread_number(block: int) -> ir.Value:
    """The number of the thread in a launch of one dimension."""
    first = arith.MulIOp(gpu.BlockIdOp(gpu.Dimension.x).result, as_index(block)).result
    return arith.AddIOp(first, gpu.ThreadIdOp(gpu.Dimension.x).result).result


def _copy(launch: _Launch, copy: ir.Operation) -> None:
    source, target = copy.operands

    def body(at: list[ir.Value]) -> None:
        memref.StoreOp(memref.LoadOp(source, at).result, target, at)

    launch.over([size_of(target, dim) for dim in range(ir.MemRefType(target.type).rank)], body)
