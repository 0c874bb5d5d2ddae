"""Nests of scf.for that carry tensors, for ops whose bodies are written out element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import size_of
from pipeline.mlir import ir, scf

Body = Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]]


def loops(sizes: Sequence[ir.Value], carried: list[ir.Value], body: Body) -> list[ir.Value]:
    """A nest of scf.for, one for each size, that carries values; `body` gets the indices and the values."""
    if not sizes:  # a scalar is a line of one: a loop all the same, so that there is an op to become a kernel
        return loops([as_index(1)], carried, lambda _, values: body([], values))

    def nest(depth: int, at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        if depth == len(sizes):
            return body(at, carried)
        loop = scf.ForOp(as_index(0), sizes[depth], as_index(1), carried)
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(nest(depth + 1, [*at, loop.induction_variable], list(loop.inner_iter_args)))
        return list(loop.results)

    return nest(0, [], carried)


def sizes_of(value: ir.Value) -> list[ir.Value]:
    """The sizes of a tensor, as indices."""
    return [size_of(value, dim) for dim in range(ir.RankedTensorType(value.type).rank)]
