"""map-to-threads: dispatches become what one thread of a GPU does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from pipeline.analysis.access import Loops, loops_of
from pipeline.mlir import affine, arith, constant_integer, gpu, ir, memref, remap_operands, scf, walk
from pipeline.passes import contraction_blocks, row_reductions, wide_accesses
from pipeline.passes.base import Pass
from pipeline.passes.contraction_blocks import split_contraction
from pipeline.passes.rewriting import before, replace
from pipeline.passes.row_reductions import choose_rows
from pipeline.passes.split_dispatches import DISPATCH, THREADS, is_fill, parallel_nest

#: How many threads a block has, and of how many items one block takes care.
BLOCK, ITEMS = "pipeline.block", "pipeline.items"

#: The most blocks that a launch may have along one dimension, in WebGPU.
_MOST_BLOCKS = 65535


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

    block: int = field(default=128, metadata={"help": "how many threads a block has"})
    shared_memory: bool = field(default=True, metadata={"help": "threads of a block work together"})
    access_bytes: int = field(default=0, metadata={"help": "a thread's accesses are that wide where elements allow it"})
    shuffles: bool = field(default=False, metadata={"help": "the 32 threads of a warp can hand numbers to each other"})

    def run(self, op: ir.Operation) -> None:
        """Maps every dispatch of the module."""
        for function in walk(op, "func.func"):
            if DISPATCH in function.attributes:
                self._map(function)

    def _map(self, function: ir.Operation) -> None:
        ops = [op.operation for op in function.regions[0].blocks[0].operations]
        fills = {op.operands[1]: op for op in ops if is_fill(op)}
        roots = [op for op in ops if op.name in ("linalg.generic", "memref.copy") and op not in fills.values()]
        root = roots[-1] if roots else next(iter(fills.values()), None)
        if root is None:
            self._loops(function, ops)
            return
        with before(root):
            if root.name == "memref.copy":
                _copy(_Launch(function, self.block), root)
            else:
                self._generic(_Launch(function, self.block), root, {} if root in fills.values() else fills)
        for op in {root, *fills.values()}:
            op.erase()

    def _loops(self, function: ir.Operation, ops: list[ir.Operation]) -> None:
        """One thread for each iteration of the parallel loops; one in all if there are none."""
        nest = next((found for found in map(parallel_nest, ops) if found), None)
        if nest is None:
            _describe(function, 1, 1, 1)
            return
        sizes = [constant_integer(loop.operands[1]) for loop in nest]
        counts = [loop.operands[1] if size is None else size for loop, size in zip(nest, sizes, strict=True)]

        def body(at: list[ir.Value]) -> None:
            known = {loop.regions[0].blocks[0].arguments[0]: one for loop, one in zip(nest, at, strict=True)}
            inner = [op.operation for loop in nest for op in loop.regions[0].blocks[0].operations]
            for op in inner:
                if op in nest or op.name == "scf.yield":
                    continue
                copy = op.clone()
                remap_operands(copy, known)
                known.update(zip(op.results, copy.results, strict=True))

        with before(nest[0]):
            _Launch(function, self.block).over(counts, body)
        nest[0].erase()

    def _generic(self, launch: _Launch, generic: ir.Operation, fills: dict[ir.Value, ir.Operation]) -> None:
        loops = loops_of(generic)
        if loops is None:
            self.fail(generic, "a loop of this op is bounded by no dimension of an operand")
        split = split_contraction(generic, loops) if self.shared_memory else None
        if split is not None:
            start = fills.get(generic.operands[2])
            contraction_blocks.Emitter(generic, loops, split, None if start is None else start.operands[0]).emit()
            threads = contraction_blocks.THREADS
            _describe(launch.function, split.blocks * threads, threads, threads)
            return
        thread = _Thread(generic, loops, {buffer: fill.operands[0] for buffer, fill in fills.items()})
        rows = choose_rows(generic, loops) if self.shared_memory else None
        if rows is not None:
            thread.emit_rows(row_reductions.Emitter(rows, thread.kinds, self.shuffles))
            _describe(launch.function, rows.count * rows.threads, rows.threads, rows.threads)
            return
        lanes = wide_accesses.lanes(generic, loops, self.access_bytes)
        if lanes > 1:
            launch.over([prod(size for size in loops.sizes if size is not None) // lanes], thread.emit_wide(lanes))
            return
        launch.over([thread.size(dim) for dim in thread.parallel], thread.emit)


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
        _describe(self.function, total, block, block)
        if total == 1:
            body([_index(0)] * len(sizes))
            return
        count = _index(1)
        for size in sizes:
            count = arith.MulIOp(count, _value(size)).result
        number = thread_number(block)
        if total is None or total > block * _MOST_BLOCKS:
            stride = arith.MulIOp(gpu.GridDimOp(gpu.Dimension.x).result, _index(block)).result
            loop = scf.ForOp(number, count, stride)
            with ir.InsertionPoint(loop.body):
                body(_unravel(loop.induction_variable, sizes))
                scf.YieldOp([])
        elif total % block == 0:
            body(_unravel(number, sizes))
        else:
            branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, number, count).result)
            with ir.InsertionPoint(branch.then_block):
                body(_unravel(number, sizes))
                scf.YieldOp([])


def _describe(function: ir.Operation, threads: int | None, block: int, items: int) -> None:
    """Leaves in the attributes how a dispatch is launched."""
    numbers = {BLOCK: block, ITEMS: items} | ({} if threads is None else {THREADS: threads})
    for name, number in numbers.items():
        function.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def thread_number(block: int) -> ir.Value:
    """The number of the thread in a launch of one dimension."""
    first = arith.MulIOp(gpu.BlockIdOp(gpu.Dimension.x).result, _index(block)).result
    return arith.AddIOp(first, gpu.ThreadIdOp(gpu.Dimension.x).result).result


def _unravel(number: ir.Value, sizes: Sequence[ir.Value | int]) -> list[ir.Value]:
    """The indices of point `number` of a box."""
    indices: list[ir.Value] = []
    for position in reversed(range(len(sizes))):
        size = sizes[position]
        if size == 1:
            indices.insert(0, _index(0))
        elif position == 0 or all(outer == 1 for outer in sizes[:position]):
            indices.insert(0, number)
        else:
            indices.insert(0, arith.RemUIOp(number, _value(size)).result)
            number = arith.DivUIOp(number, _value(size)).result
    return indices


def _copy(launch: _Launch, copy: ir.Operation) -> None:
    source, target = copy.operands

    def body(at: list[ir.Value]) -> None:
        memref.StoreOp(memref.LoadOp(source, at).result, target, at)

    launch.over([_size(target, dim) for dim in range(ir.MemRefType(target.type).rank)], body)


@dataclass
class _Thread:
    """What a thread does for a linalg.generic on buffers: one element of each result."""

    generic: ir.Operation
    loops: Loops
    filled: dict[ir.Value, ir.Value]

    @property
    def parallel(self) -> list[int]:
        """The parallel loops, outermost first; as the dimensions of the first result are, where that says."""
        dims = [dim for dim, reduction in enumerate(self.loops.reductions) if not reduction]
        results = self.loops.maps[self.loops.inputs].results
        order = [ir.AffineDimExpr(e).position for e in results if isinstance(e, ir.AffineDimExpr)]
        return [dim for dim in dims if dim not in order] + [dim for dim in order if dim in dims]

    def size(self, dim: int) -> ir.Value | int:
        """The number of iterations of a loop."""
        operand, position = self.loops.bounds[dim]
        return _size(self.generic.operands[operand], position)

    @property
    def kinds(self) -> list[ir.Type]:
        """The types of the results' elements."""
        return [ir.MemRefType(self.generic.operands[output].type).element_type for output in self.loops.outputs]

    def emit_rows(self, emitter: row_reductions.Emitter) -> None:
        """Everything, by a block for each point of the parallel loops."""
        sizes = [self.size(dim) for dim in self.parallel]
        at = dict(zip(self.parallel, _unravel(emitter.row, sizes), strict=True))
        reductions = [dim for dim, reduction in enumerate(self.loops.reductions) if reduction]
        lengths = [self.size(dim) for dim in reductions]

        def body(place: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            return self._body(at | dict(zip(reductions, _unravel(place, lengths), strict=True)), values)

        def finish(total: list[ir.Value]) -> None:
            for output, value, fold in zip(self.loops.outputs, total, emitter.rows.folds, strict=True):
                whole = row_reductions.combine(fold, self._start(output, at), value)
                memref.StoreOp(whole, self.generic.operands[output], self._indices(output, at))

        emitter.emit(body, finish)

    def emit_wide(self, lanes: int) -> Callable[[list[ir.Value]], None]:
        """Everything, for several elements side by side."""
        block = self.generic.regions[0].blocks[0]

        def one(elements: list[ir.Value]) -> list[ir.Value]:
            return clone_block(block, elements, [])

        return lambda point: wide_accesses.emit(self.generic, self.loops, lanes, point[0], one)

    def emit(self, point: list[ir.Value]) -> None:
        """Everything, for one point of the parallel loops."""
        at = dict(zip(self.parallel, point, strict=True))
        reductions = [dim for dim, reduction in enumerate(self.loops.reductions) if reduction]
        values = [self._start(output, at) for output in self.loops.outputs]
        values = self._reduce(reductions, at, values)
        for output, value in zip(self.loops.outputs, values, strict=True):
            memref.StoreOp(value, self.generic.operands[output], self._indices(output, at))

    def _start(self, output: int, at: dict[int, ir.Value]) -> ir.Value:
        """What a result's element is before: what a fill has put there, else what is in memory."""
        buffer = self.generic.operands[output]
        return self.filled[buffer] if buffer in self.filled else self._load(output, at)

    def _reduce(self, dims: list[int], at: dict[int, ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        if not dims:
            return self._body(at, values)
        loop = scf.ForOp(_index(0), _value(self.size(dims[0])), _index(1), values)
        with ir.InsertionPoint(loop.body):
            inner = {**at, dims[0]: loop.induction_variable}
            scf.YieldOp(self._reduce(dims[1:], inner, list(loop.inner_iter_args)))
        return list(loop.results)

    def _body(self, at: dict[int, ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        block = self.generic.regions[0].blocks[0]
        elements = [self._load(number, at) for number in range(self.loops.inputs)] + values
        return clone_block(block, elements, [at[dim] for dim in range(len(self.loops.reductions))])

    def _load(self, operand: int, at: dict[int, ir.Value]) -> ir.Value:
        value = self.generic.operands[operand]
        if not isinstance(value.type, ir.MemRefType):
            return value
        return memref.LoadOp(value, self._indices(operand, at)).result

    def _indices(self, operand: int, at: dict[int, ir.Value]) -> list[ir.Value]:
        indexing = self.loops.maps[operand]
        values = [at.get(dim) for dim in range(indexing.n_dims)]
        indices = []
        for expression in indexing.results:
            if isinstance(expression, ir.AffineDimExpr):
                indices.append(values[ir.AffineDimExpr(expression).position])
                continue
            given = [_index(0) if value is None else value for value in values]
            indices.append(affine.AffineApplyOp(ir.AffineMap.get(indexing.n_dims, 0, [expression]), given).result)
        return indices


def clone_block(block: ir.Block, arguments: list[ir.Value], indices: list[ir.Value]) -> list[ir.Value]:
    """Copies a linalg body to the insertion point; returns what it yields. `indices` are what linalg.index gives."""
    known: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
    *ops, terminator = [op.operation for op in block.operations]
    for op in ops:
        if op.name == "linalg.index":
            known[op.results[0]] = indices[ir.IntegerAttr(op.attributes["dim"]).value]
            continue
        copy = op.clone()
        remap_operands(copy, known)
        for inner in walk(copy, "linalg.index"):
            replace(inner, [indices[ir.IntegerAttr(inner.attributes["dim"]).value]])
        known.update(zip(op.results, copy.results, strict=True))
    return [known.get(value, value) for value in terminator.operands]


def _size(value: ir.Value, dim: int) -> ir.Value | int:
    """A dimension's size, as a number if it is known."""
    kind = ir.MemRefType(value.type)
    if not kind.is_dynamic_dim(dim):
        return kind.get_dim_size(dim)
    return memref.DimOp(value, _index(dim)).result


def _value(size: ir.Value | int) -> ir.Value:
    return _index(size) if isinstance(size, int) else size


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
