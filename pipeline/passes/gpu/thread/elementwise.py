"""Writes what one thread does for a linalg op on buffers: one element of each result; what map-to-threads emits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.ir.constants import as_index, zero
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.rewriting import copy_body
from pipeline.mlir import ir, memref, scf
from pipeline.passes.gpu.thread import vector_access, warp_reduction
from pipeline.passes.gpu.thread.thread_results import Results, is_private, load, unravel


@dataclass
class Thread:
    """What a thread does for a linalg.generic on buffers.

    Attributes:
        output: the op, and what becomes of its results.
        filled: what a fill in front of the op has put into a buffer.
    """

    output: Results
    filled: dict[ir.Value, ir.Value]

    @property
    def view(self) -> LinalgOp:
        """The op."""
        return self.output.anchor

    @property
    def parallel(self) -> list[int]:
        """The parallel loops, outermost first; as the dimensions of the first result are, where that says."""
        dims = [dim for dim, reduction in enumerate(self.view.reductions) if not reduction]
        results = self.view.maps[self.view.inputs].results
        order = [ir.AffineDimExpr(e).position for e in results if isinstance(e, ir.AffineDimExpr)]
        return [dim for dim in dims if dim not in order] + [dim for dim in order if dim in dims]

    def size(self, dim: int) -> ir.Value | int:
        """The number of iterations of a loop."""
        operand, position = self.view.bounds[dim]
        return size_of(self.view.operands[operand], position)

    @property
    def kinds(self) -> list[ir.Type]:
        """The types of the results' elements."""
        return [ir.MemRefType(self.view.operands[output].type).element_type for output in self.view.outputs]

    def emit_rows(self, emitter: warp_reduction.WarpEmitter) -> None:
        """Everything, by a block for each point of the parallel loops."""
        sizes = [self.size(dim) for dim in self.parallel]
        at = dict(zip(self.parallel, unravel(emitter.row, sizes), strict=True))
        reductions = self.view.summed
        lengths = [self.size(dim) for dim in reductions]

        def body(place: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            return self._body(at | dict(zip(reductions, unravel(place, lengths), strict=True)), values)

        def finish(total: list[ir.Value]) -> None:
            folds = zip(self.view.outputs, total, emitter.rows.folds, strict=True)
            whole = [warp_reduction.combine(fold, self._start(output, at), value) for output, value, fold in folds]
            self.output.write(at, whole)

        emitter.emit(body, finish)

    def emit_wide(self, lanes: int) -> Callable[[list[ir.Value]], None]:
        """Everything, for several elements side by side."""

        def write(point: list[ir.Value]) -> None:
            known: dict[ir.Value, list[ir.Value]] = {}
            for view in self._ops():
                vector_access.emit(view, lanes, point[0], known)

        return write

    def lanes(self, access_bytes: int) -> int:
        """How many elements side by side all ops can take at a time, with accesses of so many bytes."""
        return min(vector_access.lanes(view, access_bytes) for view in self._ops())

    def _ops(self) -> list[LinalgOp]:
        return [self.view, *self.output.behind]

    def emit(self, point: list[ir.Value]) -> None:
        """Everything, for one point of the parallel loops."""
        at = dict(zip(self.parallel, point, strict=True))
        reductions = self.view.summed
        values = [self._start(output, at) for output in self.view.outputs]
        self.output.write(at, self._reduce(reductions, at, values))

    def _start(self, output: int, at: dict[int, ir.Value]) -> ir.Value:
        """What a result's element is before: what a fill has put there, else what is in memory."""
        buffer = self.view.operands[output]
        if buffer in self.filled:
            return self.filled[buffer]
        if is_private(buffer):  # nothing has been written yet
            return zero(ir.MemRefType(buffer.type).element_type)
        return load(buffer, self.view.maps[output], at)

    def _reduce(self, dims: list[int], at: dict[int, ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        if not dims:
            return self._body(at, values)
        loop = scf.ForOp(as_index(0), as_index(self.size(dims[0])), as_index(1), values)
        with ir.InsertionPoint(loop.body):
            inner = {**at, dims[0]: loop.induction_variable}
            scf.YieldOp(self._reduce(dims[1:], inner, list(loop.inner_iter_args)))
        return list(loop.results)

    def _body(self, at: dict[int, ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        inputs = [load(self.view.operands[n], self.view.maps[n], at) for n in range(self.view.inputs)]
        return copy_body(self.view, inputs + values, lambda loop: at[loop])


def size_of(value: ir.Value, dim: int) -> ir.Value | int:
    """A dimension's size, as a number if it is known."""
    kind = ir.MemRefType(value.type)
    if not kind.is_dynamic_dim(dim):
        return kind.get_dim_size(dim)
    return memref.DimOp(value, as_index(dim)).result
